//! tolerance: reduction
//! meshes: 1x8x1
module @jit_axes_of_one_device attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=1, "model"=8, "pipe"=1]> {stablehlo.mesh = {axes = [{name = "data", size = 1 : i64}, {name = "model", size = 8 : i64}, {name = "pipe", size = 1 : i64}]}}
  func.func public @main(%arg0: tensor<6x8xf32>) -> (tensor<6x1xf32> {jax.result_info = "result[0]"}, tensor<6x1xf32> {jax.result_info = "result[1]"}, tensor<6x8xf32> {jax.result_info = "result[2]"}, tensor<6x8xf32> {jax.result_info = "result[3]"}, tensor<6x8xf32> {jax.result_info = "result[4]"}, tensor<6x8xf32> {jax.result_info = "result[5]"}) {
    %0:6 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{}, {"model"}]>, <@mesh, [{"data"}, {"model"}]>, <@mesh, [{"data"}, {"model"}]>, <@mesh, [{"data"}, {"model"}]>] manual_axes={"data", "model", "pipe"} (%arg1: tensor<6x1xf32>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %25 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %25 : tensor<f32>
      }) : (tensor<6x1xf32>) -> tensor<6x1xf32>
      %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x1xf32>
      %3 = stablehlo.multiply %arg1, %2 : tensor<6x1xf32>
      %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %25 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %25 : tensor<f32>
      }) : (tensor<6x1xf32>) -> tensor<6x1xf32>
      %5 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0], [1], [2], [3], [4], [5], [6], [7]]> : tensor<8x1xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %25 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
        stablehlo.return %25 : tensor<f32>
      }) : (tensor<6x1xf32>) -> tensor<6x1xf32>
      %6 = "stablehlo.reduce_scatter"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0], [1], [2], [3], [4], [5], [6], [7]]> : tensor<8x1xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %25 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %25 : tensor<f32>
      }) : (tensor<6x1xf32>) -> tensor<6x1xf32>
      %7 = "stablehlo.all_gather"(%6) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0], [1], [2], [3], [4], [5], [6], [7]]> : tensor<8x1xi64>, use_global_device_ids}> : (tensor<6x1xf32>) -> tensor<6x1xf32>
      %8 = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6], [7, 7]]> : tensor<8x2xi64>}> : (tensor<6x1xf32>) -> tensor<6x1xf32>
      %9 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0], [1], [2], [3], [4], [5], [6], [7]]> : tensor<8x1xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %25 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %25 : tensor<f32>
      }) : (tensor<6x1xf32>) -> tensor<6x1xf32>
      %c = stablehlo.constant dense<8> : tensor<ui32>
      %c_0 = stablehlo.constant dense<1> : tensor<ui32>
      %10 = stablehlo.partition_id : tensor<ui32>
      %11 = stablehlo.divide %10, %c : tensor<ui32>
      %12 = stablehlo.remainder %11, %c_0 : tensor<ui32>
      %13 = stablehlo.convert %12 : (tensor<ui32>) -> tensor<i32>
      %c_1 = stablehlo.constant dense<10> : tensor<i32>
      %14 = stablehlo.multiply %13, %c_1 : tensor<i32>
      %15 = stablehlo.convert %14 : (tensor<i32>) -> tensor<f32>
      %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> tensor<6x1xf32>
      %17 = stablehlo.add %arg1, %16 : tensor<6x1xf32>
      %c_2 = stablehlo.constant dense<1> : tensor<ui32>
      %c_3 = stablehlo.constant dense<8> : tensor<ui32>
      %18 = stablehlo.partition_id : tensor<ui32>
      %19 = stablehlo.divide %18, %c_2 : tensor<ui32>
      %20 = stablehlo.remainder %19, %c_3 : tensor<ui32>
      %21 = stablehlo.convert %20 : (tensor<ui32>) -> tensor<i32>
      %22 = stablehlo.convert %21 : (tensor<i32>) -> tensor<f32>
      %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<6x1xf32>
      %24 = stablehlo.add %17, %23 : tensor<6x1xf32>
      sdy.return %1, %5, %9, %7, %8, %24 : tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>
    } : (tensor<6x8xf32>) -> (tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>)
    return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
  }
}
