//! tolerance: reduction
//! meshes: 1 2
module @jit_loops attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<7x5xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> (tensor<5xf32> {jax.result_info = "result[0]"}, tensor<7x5xf32> {jax.result_info = "result[1]"}, tensor<i32> {jax.result_info = "result[2]"}, tensor<f32> {jax.result_info = "result[3]"}, tensor<f32> {jax.result_info = "result[4]"}, tensor<7x5xf32> {jax.result_info = "result[5]"}, tensor<7x5xf32> {jax.result_info = "result[6]"}, tensor<7x5xf32> {jax.result_info = "result[7]"}, tensor<7x5xf32> {jax.result_info = "result[8]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<7x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:4 = stablehlo.while(%iterArg = %arg0, %iterArg_8 = %c, %iterArg_9 = %0, %iterArg_10 = %1) : tensor<7x5xf32>, tensor<i32>, tensor<5xf32>, tensor<7x5xf32>
    cond {
      %c_11 = stablehlo.constant dense<7> : tensor<i32>
      %13 = stablehlo.compare LT, %iterArg_8, %c_11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %13 : tensor<i1>
    } do {
      %13 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_8) : (tensor<7x5xf32>, tensor<i32>) -> tensor<5xf32>
      %14:2 = func.call @closed_call(%iterArg_9, %13) : (tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>)
      %15 = func.call @dynamic_update_index_in_dim(%iterArg_10, %14#1, %iterArg_8) : (tensor<7x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<7x5xf32>
      %c_11 = stablehlo.constant dense<1> : tensor<i32>
      %16 = stablehlo.add %iterArg_8, %c_11 : tensor<i32>
      stablehlo.return %iterArg, %16, %14#0, %15 : tensor<7x5xf32>, tensor<i32>, tensor<5xf32>, tensor<7x5xf32>
    }
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.add %cst_1, %arg1 : tensor<f32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %4:2 = stablehlo.while(%iterArg = %c_2, %iterArg_8 = %3) : tensor<i32>, tensor<f32>
    cond {
      %13 = stablehlo.multiply %iterArg_8, %iterArg_8 : tensor<f32>
      %cst_9 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %14 = stablehlo.subtract %13, %cst_9 : tensor<f32>
      %15 = stablehlo.abs %14 : tensor<f32>
      %cst_10 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
      %16 = stablehlo.compare GT, %15, %cst_10, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %16 : tensor<i1>
    } do {
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %13 = stablehlo.add %iterArg, %c_9 : tensor<i32>
      %cst_10 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %14 = stablehlo.divide %cst_10, %iterArg_8 : tensor<f32>
      %15 = stablehlo.add %iterArg_8, %14 : tensor<f32>
      %cst_11 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %16 = stablehlo.divide %15, %cst_11 : tensor<f32>
      stablehlo.return %13, %16 : tensor<i32>, tensor<f32>
    }
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %5:3 = stablehlo.while(%iterArg = %c_3, %iterArg_8 = %arg2, %iterArg_9 = %arg1) : tensor<i32>, tensor<i32>, tensor<f32>
    cond {
      %13 = stablehlo.compare LT, %iterArg, %iterArg_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %13 : tensor<i1>
    } do {
      %c_10 = stablehlo.constant dense<1> : tensor<i32>
      %13 = stablehlo.add %iterArg, %c_10 : tensor<i32>
      %cst_11 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %14 = stablehlo.multiply %iterArg_9, %cst_11 : tensor<f32>
      %15 = stablehlo.convert %iterArg : (tensor<i32>) -> tensor<f32>
      %16 = stablehlo.add %14, %15 : tensor<f32>
      stablehlo.return %13, %iterArg_8, %16 : tensor<i32>, tensor<i32>, tensor<f32>
    }
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.compare GT, %arg1, %cst_4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %7 = stablehlo.convert %6 : (tensor<i1>) -> tensor<i32>
    %8 = "stablehlo.case"(%7) ({
      %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %13 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<7x5xf32>
      %14 = stablehlo.subtract %arg0, %13 : tensor<7x5xf32>
      stablehlo.return %14 : tensor<7x5xf32>
    }, {
      %cst_8 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %13 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<7x5xf32>
      %14 = stablehlo.multiply %arg0, %13 : tensor<7x5xf32>
      stablehlo.return %14 : tensor<7x5xf32>
    }) : (tensor<i32>) -> tensor<7x5xf32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %c_6 = stablehlo.constant dense<2> : tensor<i32>
    %9 = stablehlo.clamp %c_5, %arg2, %c_6 : tensor<i32>
    %10 = "stablehlo.case"(%9) ({
      stablehlo.return %arg0 : tensor<7x5xf32>
    }, {
      %13 = stablehlo.sine %arg0 : tensor<7x5xf32>
      stablehlo.return %13 : tensor<7x5xf32>
    }, {
      %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %13 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<7x5xf32>
      %14 = stablehlo.add %arg0, %13 : tensor<7x5xf32>
      stablehlo.return %14 : tensor<7x5xf32>
    }) : (tensor<i32>) -> tensor<7x5xf32>
    %11 = stablehlo.negate %arg0 : tensor<7x5xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %12:3 = stablehlo.while(%iterArg = %c_7, %iterArg_8 = %arg0, %iterArg_9 = %11) : tensor<i32>, tensor<7x5xf32>, tensor<7x5xf32>
    cond {
      %c_10 = stablehlo.constant dense<3> : tensor<i32>
      %13 = stablehlo.compare LT, %iterArg, %c_10, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %13 : tensor<i1>
    } do {
      %13:2 = func.call @closed_call_0(%iterArg_8, %iterArg_9) : (tensor<7x5xf32>, tensor<7x5xf32>) -> (tensor<7x5xf32>, tensor<7x5xf32>)
      %c_10 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.add %iterArg, %c_10 : tensor<i32>
      stablehlo.return %14, %13#0, %13#1 : tensor<i32>, tensor<7x5xf32>, tensor<7x5xf32>
    }
    return %2#2, %2#3, %4#0, %4#1, %5#2, %8, %10, %12#1, %12#2 : tensor<5xf32>, tensor<7x5xf32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<7x5xf32>, %arg1: tensor<i32>) -> tensor<5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 5] : (tensor<7x5xf32>, tensor<i32>, tensor<i32>) -> tensor<1x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x5xf32>) -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
  func.func private @closed_call(%arg0: tensor<5xf32>, %arg1: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<5xf32>
    %1 = stablehlo.tanh %0 : tensor<5xf32>
    %2 = stablehlo.multiply %arg0, %arg1 : tensor<5xf32>
    return %1, %2 : tensor<5xf32>, tensor<5xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<7x5xf32>, %arg1: tensor<5xf32>, %arg2: tensor<i32>) -> tensor<7x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<7x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<7x5xf32>
    return %1 : tensor<7x5xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<7x5xf32>, %arg1: tensor<7x5xf32>) -> (tensor<7x5xf32>, tensor<7x5xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<7x5xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<7x5xf32>
    return %arg1, %1 : tensor<7x5xf32>, tensor<7x5xf32>
  }
}
