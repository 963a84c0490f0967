// RUN: parc-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected the body to yield 1 values, one a result}}
  %p = parc.start stream "tp" : !parc.pending<tensor<2xf32>> {
    parc.yield
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected a pending 'tensor<2xf32>', got '!parc.pending<tensor<3xf32>>'}}
  %p = parc.start stream "tp" : !parc.pending<tensor<3xf32>> {
    %a = parc.all_reduce sum %x over ["tp"] why "" : tensor<2xf32>
    parc.yield %a : tensor<2xf32>
  }
  return
}

// -----

func.func @f() {
  parc.start stream "tp" {
    // expected-error @+1 {{is in the body of 'parc.start'; expected collectives, what they read and where their results go}}
    parc.start stream "dp" {
      parc.yield
    }
    parc.yield
  }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{is ahead of a layer, but in no stack}}
  parc.start stream "tp" ahead {
    parc.yield
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  %y = parc.stack @layers 0 to 2 carry(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%layer: index, %h: tensor<2xf32>):
    // expected-error @+1 {{is ahead of its layer and reads a value of it; expected loads of parameters only}}
    %p = parc.start stream "tp" ahead : !parc.pending<tensor<2xf32>> {
      %a = parc.all_reduce sum %h over ["tp"] why "" : tensor<2xf32>
      parc.yield %a : tensor<2xf32>
    }
    %z = parc.wait %p : !parc.pending<tensor<2xf32>> -> tensor<2xf32>
    parc.yield %z : tensor<2xf32>
  }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{expected either a stream or pending values to wait for}}
  "parc.wait"() : () -> ()
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  %p:2 = parc.start stream "tp" : !parc.pending<tensor<2xf32>>, !parc.pending<tensor<2xf32>> {
    %a = parc.all_reduce sum %x over ["tp"] why "" : tensor<2xf32>
    %b = parc.all_reduce max %x over ["tp"] why "" : tensor<2xf32>
    parc.yield %a, %b : tensor<2xf32>, tensor<2xf32>
  }
  // expected-error @+1 {{expected all that one 'parc.start' gives}}
  %y = parc.wait %p#1 : !parc.pending<tensor<2xf32>> -> tensor<2xf32>
  return
}

// -----

func.func @f() {
  parc.last_micro {
    // expected-error @+1 {{is in 'parc.last_micro'; expected starts only}}
    %c = arith.constant dense<0.0> : tensor<f32>
    parc.yield
  }
  return
}

// -----

parc.role @only stages [0] inputs ["x"] scalars [] results [] forward 0 {
^bb0(%x: tensor<2xi64>):
  // expected-error @+1 {{expected the backward region of a role around it}}
  parc.last_micro {
    parc.yield
  }
  parc.yield
} backward 0 {
^bb0(%x: tensor<2xi64>):
  parc.yield
} update {
  parc.yield
}
