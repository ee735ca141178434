//! tolerance: reduction
//! meshes: 2x4 1x1 3x2
module @jit_training_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=2, "Y"=4]> {stablehlo.mesh = {axes = [{name = "X", size = 2 : i64}, {name = "Y", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}, %arg1: tensor<12x20xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"Y"}]>}, %arg2: tensor<20xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}]>}, %arg3: tensor<20x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {}]>}, %arg4: tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<12x20xf32> {jax.result_info = "result[1]"}, tensor<20xf32> {jax.result_info = "result[2]"}, tensor<20x6xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x12xf32>, tensor<12x20xf32>) -> tensor<16x20xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<20xf32>) -> tensor<1x20xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x20xf32>) -> tensor<16x20xf32>
    %3 = stablehlo.add %0, %2 : tensor<16x20xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{"X"}, {"Y"}]> : tensor<16x20xf32>
    %5 = stablehlo.multiply %4, %4 : tensor<16x20xf32>
    %6 = stablehlo.multiply %5, %4 : tensor<16x20xf32>
    %7 = stablehlo.multiply %4, %4 : tensor<16x20xf32>
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %9 = stablehlo.multiply %8, %7 : tensor<16x20xf32>
    %cst_0 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %11 = stablehlo.multiply %10, %6 : tensor<16x20xf32>
    %12 = stablehlo.add %4, %11 : tensor<16x20xf32>
    %cst_1 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %14 = stablehlo.multiply %13, %12 : tensor<16x20xf32>
    %15 = stablehlo.tanh %14 : tensor<16x20xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %17 = stablehlo.subtract %16, %15 : tensor<16x20xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %19 = stablehlo.add %18, %15 : tensor<16x20xf32>
    %cst_4 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %21 = stablehlo.multiply %20, %19 : tensor<16x20xf32>
    %22 = stablehlo.multiply %4, %21 : tensor<16x20xf32>
    %23 = stablehlo.dot_general %22, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x20xf32>, tensor<20x6xf32>) -> tensor<16x6xf32>
    %24:3 = call @log_softmax(%23) : (tensor<16x6xf32>) -> (tensor<16x6xf32>, tensor<16x6xf32>, tensor<16x1xf32>)
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %25 = stablehlo.reduce(%arg4 init: %cst_5) applies stablehlo.maximum across dimensions = [1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<16xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %27 = stablehlo.maximum %26, %25 : tensor<16xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x6xf32>
    %30 = stablehlo.subtract %arg4, %29 : tensor<16x6xf32>
    %31 = stablehlo.exponential %30 : tensor<16x6xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %32 = stablehlo.reduce(%31 init: %cst_7) applies stablehlo.add across dimensions = [1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<16xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x6xf32>
    %35 = stablehlo.divide %31, %34 : tensor<16x6xf32>
    %36 = stablehlo.multiply %24#0, %35 : tensor<16x6xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = stablehlo.reduce(%36 init: %cst_8) applies stablehlo.add across dimensions = [1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<16xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.reduce(%37 init: %cst_9) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %cst_10 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %39 = stablehlo.divide %38, %cst_10 : tensor<f32>
    %40 = stablehlo.negate %39 : tensor<f32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %41 = stablehlo.negate %cst_11 : tensor<f32>
    %cst_12 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %42 = stablehlo.divide %41, %cst_12 : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %42, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0] : (tensor<16xf32>) -> tensor<16x6xf32>
    %45 = stablehlo.multiply %44, %35 : tensor<16x6xf32>
    %46 = call @log_softmax_0(%24#1, %24#2, %45) : (tensor<16x6xf32>, tensor<16x1xf32>, tensor<16x6xf32>) -> tensor<16x6xf32>
    %47 = stablehlo.dot_general %46, %22, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x6xf32>, tensor<16x20xf32>) -> tensor<6x20xf32>
    %48 = stablehlo.transpose %47, dims = [1, 0] : (tensor<6x20xf32>) -> tensor<20x6xf32>
    %49 = stablehlo.dot_general %46, %arg3, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x6xf32>, tensor<20x6xf32>) -> tensor<16x20xf32>
    %50 = stablehlo.multiply %4, %49 : tensor<16x20xf32>
    %51 = stablehlo.multiply %49, %21 : tensor<16x20xf32>
    %cst_13 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %53 = stablehlo.multiply %52, %50 : tensor<16x20xf32>
    %54 = stablehlo.multiply %53, %17 : tensor<16x20xf32>
    %55 = stablehlo.multiply %54, %15 : tensor<16x20xf32>
    %56 = stablehlo.add %54, %55 : tensor<16x20xf32>
    %cst_14 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %58 = stablehlo.multiply %57, %56 : tensor<16x20xf32>
    %59 = stablehlo.add %51, %58 : tensor<16x20xf32>
    %cst_15 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16x20xf32>
    %61 = stablehlo.multiply %60, %58 : tensor<16x20xf32>
    %62 = stablehlo.multiply %61, %9 : tensor<16x20xf32>
    %63 = stablehlo.add %59, %62 : tensor<16x20xf32>
    %64 = sdy.sharding_constraint %63 <@mesh, [{"X"}, {"Y"}]> : tensor<16x20xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %65 = stablehlo.reduce(%64 init: %cst_16) applies stablehlo.add across dimensions = [0] : (tensor<16x20xf32>, tensor<f32>) -> tensor<20xf32>
    %66 = stablehlo.reshape %65 : (tensor<20xf32>) -> tensor<1x20xf32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %67 = stablehlo.reduce(%66 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<1x20xf32>, tensor<f32>) -> tensor<20xf32>
    %68 = stablehlo.dot_general %64, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x20xf32>, tensor<16x12xf32>) -> tensor<20x12xf32>
    %69 = stablehlo.transpose %68, dims = [1, 0] : (tensor<20x12xf32>) -> tensor<12x20xf32>
    %cst_18 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<12x20xf32>
    %71 = stablehlo.multiply %70, %69 : tensor<12x20xf32>
    %72 = stablehlo.subtract %arg1, %71 : tensor<12x20xf32>
    %cst_19 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %73 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %74 = stablehlo.multiply %73, %67 : tensor<20xf32>
    %75 = stablehlo.subtract %arg2, %74 : tensor<20xf32>
    %cst_20 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<20x6xf32>
    %77 = stablehlo.multiply %76, %48 : tensor<20x6xf32>
    %78 = stablehlo.subtract %arg3, %77 : tensor<20x6xf32>
    return %40, %72, %75, %78 : tensor<f32>, tensor<12x20xf32>, tensor<20xf32>, tensor<20x6xf32>
  }
  func.func private @log_softmax(%arg0: tensor<16x6xf32>) -> (tensor<16x6xf32>, tensor<16x6xf32>, tensor<16x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<16xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<16xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x6xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<16x6xf32>
    %6 = stablehlo.exponential %5 : tensor<16x6xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %9 = stablehlo.log %8 : tensor<16x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x6xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<16x6xf32>
    return %11, %6, %8 : tensor<16x6xf32>, tensor<16x6xf32>, tensor<16x1xf32>
  }
  func.func private @log_softmax_0(%arg0: tensor<16x6xf32>, %arg1: tensor<16x1xf32>, %arg2: tensor<16x6xf32>) -> tensor<16x6xf32> {
    %0 = stablehlo.negate %arg2 : tensor<16x6xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<16xf32>
    %2 = stablehlo.reshape %1 : (tensor<16xf32>) -> tensor<16x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<16x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<16x1xf32>, tensor<f32>) -> tensor<16xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<16xf32>) -> tensor<16x6xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<16x6xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<16x6xf32>
    return %7 : tensor<16x6xf32>
  }
}
