//! tolerance: reduction
//! meshes: 1
module @jit_one_device attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x8xf32>) -> (tensor<6x8xf32> {jax.result_info = "result[0]"}, tensor<6x8xf32> {jax.result_info = "result[1]"}, tensor<6x8xf32> {jax.result_info = "result[2]"}, tensor<6x8xf32> {jax.result_info = "result[3]"}, tensor<6x8xf32> {jax.result_info = "result[4]"}, tensor<6x8xf32> {jax.result_info = "result[5]"}) {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %24 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %24 : tensor<f32>
    }) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x8xf32>
    %2 = stablehlo.multiply %arg0, %1 : tensor<6x8xf32>
    %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %24 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %24 : tensor<f32>
    }) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %24 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %24 : tensor<f32>
    }) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %5 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %24 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %24 : tensor<f32>
    }) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %6 = "stablehlo.all_gather"(%5) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %7 = "stablehlo.collective_permute"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<0> : tensor<1x2xi64>}> : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %8 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %24 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %24 : tensor<f32>
    }) : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %c = stablehlo.constant dense<1> : tensor<ui32>
    %c_0 = stablehlo.constant dense<1> : tensor<ui32>
    %9 = stablehlo.partition_id : tensor<ui32>
    %10 = stablehlo.divide %9, %c : tensor<ui32>
    %11 = stablehlo.remainder %10, %c_0 : tensor<ui32>
    %12 = stablehlo.convert %11 : (tensor<ui32>) -> tensor<i32>
    %c_1 = stablehlo.constant dense<10> : tensor<i32>
    %13 = stablehlo.multiply %12, %c_1 : tensor<i32>
    %14 = stablehlo.convert %13 : (tensor<i32>) -> tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<6x8xf32>
    %16 = stablehlo.add %arg0, %15 : tensor<6x8xf32>
    %c_2 = stablehlo.constant dense<1> : tensor<ui32>
    %c_3 = stablehlo.constant dense<1> : tensor<ui32>
    %17 = stablehlo.partition_id : tensor<ui32>
    %18 = stablehlo.divide %17, %c_2 : tensor<ui32>
    %19 = stablehlo.remainder %18, %c_3 : tensor<ui32>
    %20 = stablehlo.convert %19 : (tensor<ui32>) -> tensor<i32>
    %21 = stablehlo.convert %20 : (tensor<i32>) -> tensor<f32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<6x8xf32>
    %23 = stablehlo.add %16, %22 : tensor<6x8xf32>
    return %0, %4, %8, %6, %7, %23 : tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
  }
}
