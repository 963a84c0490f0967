// RUN: parc-opt %s --parc-verify-schedule -split-input-file -verify-diagnostics

parc.schedule "gpipe" micro_batches 4 layers [@layers] counts [3] bounds [0, 2, 3]

// -----

// expected-error @+1 {{unknown schedule '1b1f', expected one of gpipe 1f1b}}
parc.schedule "1b1f" micro_batches 4 layers [@layers] counts [3] bounds [0, 2, 3]
