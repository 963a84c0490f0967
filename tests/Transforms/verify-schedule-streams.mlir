// RUN: parc-opt %s --parc-verify-schedule -split-input-file -verify-diagnostics

// A right one: nothing to say.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.accumulate @w, %x : tensor<4xf64>
  parc.last_micro {
    parc.start stream "dp" {
      %g = parc.load @w slot "grad" : tensor<4xf64>
      %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf64>
      parc.store @w, %s slot "grad" : tensor<4xf64>
      parc.yield
    }
    parc.yield
  }
  parc.yield
} update {
  parc.wait stream "dp"
  %g = parc.load @w slot "grad" : tensor<4xf64>
  parc.yield %g : tensor<4xf64>
}

// -----

// The update reads before it waits.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.accumulate @w, %x : tensor<4xf64>
  parc.last_micro {
    parc.start stream "dp" {
      %g = parc.load @w slot "grad" : tensor<4xf64>
      %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf64>
      // expected-note @+1 {{is stored here}}
      parc.store @w, %s slot "grad" : tensor<4xf64>
      parc.yield
    }
    parc.yield
  }
  parc.yield
} update {
  // expected-error @+1 {{uses slot 'grad' of @w while stream 'dp' stores to it; expected 'parc.wait stream "dp"' before}}
  %g = parc.load @w slot "grad" : tensor<4xf64>
  parc.wait stream "dp"
  parc.yield %g : tensor<4xf64>
}

// -----

// It waits for another stream.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.accumulate @w, %x : tensor<4xf64>
  parc.last_micro {
    parc.start stream "dp" {
      %g = parc.load @w slot "grad" : tensor<4xf64>
      %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf64>
      // expected-note @+1 {{is stored here}}
      parc.store @w, %s slot "grad" : tensor<4xf64>
      parc.yield
    }
    parc.yield
  }
  parc.yield
} update {
  parc.wait stream "tp"
  // expected-error @+1 {{uses slot 'grad' of @w while stream 'dp' stores to it}}
  %g = parc.load @w slot "grad" : tensor<4xf64>
  parc.yield %g : tensor<4xf64>
}

// -----

// The gradient is not final: more is added after the sum has started.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.last_micro {
    parc.start stream "dp" {
      %g = parc.load @w slot "grad" : tensor<4xf64>
      %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf64>
      // expected-note @+1 {{is stored here}}
      parc.store @w, %s slot "grad" : tensor<4xf64>
      parc.yield
    }
    parc.yield
  }
  // expected-error @+1 {{uses slot 'grad' of @w while stream 'dp' stores to it}}
  parc.accumulate @w, %x : tensor<4xf64>
  parc.yield
} update {
  parc.wait stream "dp"
  %g = parc.load @w slot "grad" : tensor<4xf64>
  parc.yield %g : tensor<4xf64>
}

// -----

// Another stream uses it.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.accumulate @w, %x : tensor<4xf64>
  parc.last_micro {
    parc.start stream "dp" {
      %g = parc.load @w slot "grad" : tensor<4xf64>
      %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf64>
      // expected-note @+1 {{is stored here}}
      parc.store @w, %s slot "grad" : tensor<4xf64>
      parc.yield
    }
    parc.yield
  }
  parc.yield
} update {
  parc.start stream "tp" {
    // expected-error @+1 {{uses slot 'grad' of @w while stream 'dp' stores to it}}
    %h = parc.load @w slot "grad" : tensor<4xf64>
    %s = parc.all_reduce sum %h over ["tp"] why "" : tensor<4xf64>
    parc.store @w, %s slot "grad" : tensor<4xf64>
    parc.yield
  }
  parc.wait stream "tp"
  parc.wait stream "dp"
  %g = parc.load @w slot "grad" : tensor<4xf64>
  parc.yield %g : tensor<4xf64>
}

// -----

// The same stream goes on: its starts are in order.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.accumulate @w, %x : tensor<4xf64>
  parc.last_micro {
    parc.start stream "dp" {
      %g = parc.load @w slot "grad" : tensor<4xf64>
      %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf64>
      parc.store @w, %s slot "grad" : tensor<4xf64>
      parc.yield
    }
    parc.yield
  }
  parc.yield
} update {
  parc.start stream "dp" {
    %h = parc.load @w slot "grad" : tensor<4xf64>
    %s = parc.all_reduce sum %h over ["tp"] why "" : tensor<4xf64>
    parc.store @w, %s slot "grad" : tensor<4xf64>
    parc.yield
  }
  parc.wait stream "dp"
  %g = parc.load @w slot "grad" : tensor<4xf64>
  parc.yield %g : tensor<4xf64>
}

// -----

// Nobody waits for the stream.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.accumulate @w, %x : tensor<4xf64>
  parc.last_micro {
    parc.start stream "dp" {
      %g = parc.load @w slot "grad" : tensor<4xf64>
      %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf64>
      // expected-error @+1 {{is still under way when the step ends; expected 'parc.wait stream "dp"' in the update}}
      parc.store @w, %s slot "grad" : tensor<4xf64>
      parc.yield
    }
    parc.yield
  }
  parc.yield
} update {
  %m = parc.load @w slot "m" : tensor<4xf64>
  parc.yield %m : tensor<4xf64>
}

// -----

// What a stream accumulates, the next micro-batch may not touch.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  // expected-error @+1 {{uses slot 'grad' of @w while stream 'dp' stores to it}}
  parc.accumulate @w, %x : tensor<4xf64>
  parc.start stream "dp" {
    %s = parc.all_reduce sum %x over ["dp"] why "" : tensor<4xf64>
    // expected-note @+1 {{is stored here}}
    parc.accumulate @w, %s : tensor<4xf64>
    parc.yield
  }
  parc.yield
} update {
  parc.wait stream "dp"
  %g = parc.load @w slot "grad" : tensor<4xf64>
  parc.yield %g : tensor<4xf64>
}

// -----

// A pending value is never waited for.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  // expected-error @+1 {{starts on stream 'tp' what nothing waits for; expected one 'parc.wait'}}
  %p = parc.start stream "tp" : !parc.pending<tensor<4xf64>> {
    %s = parc.all_reduce sum %x over ["tp"] why "" : tensor<4xf64>
    parc.yield %s : tensor<4xf64>
  }
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} update {
  %c = arith.constant dense<0.0> : tensor<4xf64>
  parc.yield %c : tensor<4xf64>
}

// -----

// It is waited for twice.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  // expected-error @+1 {{starts on stream 'tp' what is waited for twice; expected one 'parc.wait'}}
  %p = parc.start stream "tp" : !parc.pending<tensor<4xf64>> {
    %s = parc.all_reduce sum %x over ["tp"] why "" : tensor<4xf64>
    parc.yield %s : tensor<4xf64>
  }
  %a = parc.wait %p : !parc.pending<tensor<4xf64>> -> tensor<4xf64>
  %b = parc.wait %p : !parc.pending<tensor<4xf64>> -> tensor<4xf64>
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} update {
  %c = arith.constant dense<0.0> : tensor<4xf64>
  parc.yield %c : tensor<4xf64>
}

// -----

// It is waited for in each layer, of which there may be none.

parc.param @w : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  // expected-error @+1 {{starts on stream 'tp' what another block uses; expected a 'parc.wait' in its own, on every path}}
  %p = parc.start stream "tp" : !parc.pending<tensor<4xf64>> {
    %s = parc.all_reduce sum %x over ["tp"] why "" : tensor<4xf64>
    parc.yield %s : tensor<4xf64>
  }
  parc.stack @layers 0 to 2 : () -> () {
  ^bb0(%layer: index):
    %a = parc.wait %p : !parc.pending<tensor<4xf64>> -> tensor<4xf64>
    parc.yield
  }
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} update {
  %c = arith.constant dense<0.0> : tensor<4xf64>
  parc.yield %c : tensor<4xf64>
}

// -----

// A layer's own slot is free again in the next layer; one that layers share is not.

parc.param @w : tensor<4xf64> layers 2
parc.param @shared : tensor<4xf64>
parc.role @only stages [0] inputs ["x"] scalars [] results ["r"] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.stack @layers 0 to 2 reverse : () -> () {
  ^bb0(%layer: index):
    parc.accumulate @w, %x : tensor<4xf64>
    // expected-error @+1 {{uses slot 'grad' of @shared while stream 'dp' stores to it}}
    parc.accumulate @shared, %x : tensor<4xf64>
    parc.last_micro {
      parc.start stream "dp" {
        %g = parc.load @w slot "grad" : tensor<4xf64>
        %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf64>
        parc.store @w, %s slot "grad" : tensor<4xf64>
        %h = parc.load @shared slot "grad" : tensor<4xf64>
        %t = parc.all_reduce sum %h over ["dp"] why "" : tensor<4xf64>
        // expected-note @+1 {{is stored here}}
        parc.store @shared, %t slot "grad" : tensor<4xf64>
        parc.yield
      }
      parc.yield
    }
    parc.yield
  }
  parc.yield
} update {
  parc.wait stream "dp"
  %g = parc.load @shared slot "grad" : tensor<4xf64>
  parc.yield %g : tensor<4xf64>
}
