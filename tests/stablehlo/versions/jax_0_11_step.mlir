//! tolerance: reduction
//! meshes: 2x4 1x1
module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=2, "Y"=4]> {stablehlo.mesh = {axes = [{name = "X", size = 2 : i64}, {name = "Y", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}, %arg1: tensor<12x20xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"Y"}]>}, %arg2: tensor<20x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {}]>}, %arg3: tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X", "Y"}, {}]>}) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<12x20xf32> {jax.result_info = "result[1]"}, tensor<20x6xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x12xf32>, tensor<12x20xf32>) -> tensor<16x20xf32>
    %1 = stablehlo.tanh %0 : tensor<16x20xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %3 = stablehlo.add %2, %1 : tensor<16x20xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %5 = stablehlo.subtract %4, %1 : tensor<16x20xf32>
    %6 = stablehlo.multiply %3, %5 : tensor<16x20xf32>
    %7 = sdy.sharding_constraint %1 <@mesh, [{"X"}, {"Y"}]> : tensor<16x20xf32>
    %8 = stablehlo.dot_general %7, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x20xf32>, tensor<20x6xf32>) -> tensor<16x6xf32>
    %9 = stablehlo.subtract %8, %arg3 : tensor<16x6xf32>
    %10 = stablehlo.multiply %9, %9 : tensor<16x6xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x6xf32>
    %12 = stablehlo.multiply %11, %9 : tensor<16x6xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.reduce(%10 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<f32>
    %cst_3 = stablehlo.constant dense<9.600000e+01> : tensor<f32>
    %14 = stablehlo.divide %13, %cst_3 : tensor<f32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<9.600000e+01> : tensor<f32>
    %15 = stablehlo.divide %cst_4, %cst_5 : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> tensor<16x6xf32>
    %17 = stablehlo.multiply %16, %12 : tensor<16x6xf32>
    %18 = stablehlo.dot_general %17, %7, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x6xf32>, tensor<16x20xf32>) -> tensor<6x20xf32>
    %19 = stablehlo.transpose %18, dims = [1, 0] : (tensor<6x20xf32>) -> tensor<20x6xf32>
    %20 = stablehlo.dot_general %17, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x6xf32>, tensor<20x6xf32>) -> tensor<16x20xf32>
    %21 = sdy.sharding_constraint %20 <@mesh, [{"X"}, {"Y"}]> : tensor<16x20xf32>
    %22 = stablehlo.multiply %21, %6 : tensor<16x20xf32>
    %23 = stablehlo.dot_general %22, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x20xf32>, tensor<16x12xf32>) -> tensor<20x12xf32>
    %24 = stablehlo.transpose %23, dims = [1, 0] : (tensor<20x12xf32>) -> tensor<12x20xf32>
    %cst_6 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<12x20xf32>
    %26 = stablehlo.multiply %25, %24 : tensor<12x20xf32>
    %27 = stablehlo.subtract %arg1, %26 : tensor<12x20xf32>
    %cst_7 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<20x6xf32>
    %29 = stablehlo.multiply %28, %19 : tensor<20x6xf32>
    %30 = stablehlo.subtract %arg2, %29 : tensor<20x6xf32>
    return %14, %27, %30 : tensor<f32>, tensor<12x20xf32>, tensor<20x6xf32>
  }
}
