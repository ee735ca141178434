//! tolerance: reduction
//! meshes: 2x4 1x1
module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x12xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}, %arg1: tensor<12x20xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %arg2: tensor<20x6xf32> {mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %arg3: tensor<16x6xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<12x20xf32> {jax.result_info = "result[1]"}, tensor<20x6xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x12xf32>, tensor<12x20xf32>) -> tensor<16x20xf32>
    %1 = stablehlo.tanh %0 : tensor<16x20xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %3 = stablehlo.subtract %2, %1 : tensor<16x20xf32>
    %4 = stablehlo.custom_call @Sharding(%1) {backend_config = "", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<16x20xf32>) -> tensor<16x20xf32>
    %5 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x20xf32>, tensor<20x6xf32>) -> tensor<16x6xf32>
    %6 = stablehlo.subtract %5, %arg3 : tensor<16x6xf32>
    %7 = stablehlo.multiply %6, %6 : tensor<16x6xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x6xf32>
    %9 = stablehlo.multiply %8, %6 : tensor<16x6xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<9.600000e+01> : tensor<f32>
    %11 = stablehlo.divide %10, %cst_2 : tensor<f32>
    %12 = stablehlo.divide %cst, %cst_2 : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<16x6xf32>
    %14 = stablehlo.multiply %13, %9 : tensor<16x6xf32>
    %15 = stablehlo.dot_general %14, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x6xf32>, tensor<16x20xf32>) -> tensor<6x20xf32>
    %16 = stablehlo.transpose %15, dims = [1, 0] : (tensor<6x20xf32>) -> tensor<20x6xf32>
    %17 = stablehlo.dot_general %14, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x6xf32>, tensor<20x6xf32>) -> tensor<16x20xf32>
    %18 = stablehlo.custom_call @Sharding(%17) {backend_config = "", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<16x20xf32>) -> tensor<16x20xf32>
    %19 = stablehlo.multiply %18, %3 : tensor<16x20xf32>
    %20 = stablehlo.multiply %19, %1 : tensor<16x20xf32>
    %21 = stablehlo.add %19, %20 : tensor<16x20xf32>
    %22 = stablehlo.dot_general %21, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x20xf32>, tensor<16x12xf32>) -> tensor<20x12xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0] : (tensor<20x12xf32>) -> tensor<12x20xf32>
    %cst_3 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<12x20xf32>
    %25 = stablehlo.multiply %24, %23 : tensor<12x20xf32>
    %26 = stablehlo.subtract %arg1, %25 : tensor<12x20xf32>
    %27 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<20x6xf32>
    %28 = stablehlo.multiply %27, %16 : tensor<20x6xf32>
    %29 = stablehlo.subtract %arg2, %28 : tensor<20x6xf32>
    return %11, %26, %29 : tensor<f32>, tensor<12x20xf32>, tensor<20x6xf32>
  }
}
