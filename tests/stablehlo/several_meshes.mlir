//! tolerance: reduction
//! meshes: 2x2x2
module @f attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @flat = <["all"=8]>
  sdy.mesh @turned = <["p"=4, "q"=2], device_ids=[0, 4, 1, 5, 2, 6, 3, 7]>
  sdy.mesh @maximal = <[], device_ids=[0]>
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}p0, {"y":(2)2, ?}p1]>}, %arg1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@flat, [{"all"}, {}], replicated={}>}) -> (tensor<8x16xf32> {jax.result_info = "result"}, tensor<f32>, tensor<8x16xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<8x16xf32>
    %1 = sdy.sharding_constraint %0 <@turned, [{"q"}, {"p"}]> : tensor<8x16xf32>
    %2 = sdy.sharding_constraint %1 <mesh<["x"=2, "y"=4]>, [{"y"}, {?}], replicated={"x"}> : tensor<8x16xf32>
    %3 = sdy.propagation_barrier %2 allowed_direction=NONE : tensor<8x16xf32>
    sdy.sharding_group %3 group_id=0 : tensor<8x16xf32>
    %4 = sdy.reshard %3 <@mesh, [{"y"}, {"x"}]> : tensor<8x16xf32>
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = sdy.sharding_constraint %cst <@maximal, []> : tensor<f32>
    %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
    %7 = sdy.manual_computation(%4) in_shardings=[<@turned, [{"p"}, {"q"}]>] out_shardings=[<@turned, [{"p"}, {"q"}]>] manual_axes={"p", "q"} (%arg2: tensor<2x8xf32>) {
      %8 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
        %9 = stablehlo.add %arg3, %arg4 : tensor<f32>
        stablehlo.return %9 : tensor<f32>
      }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
      sdy.return %8 : tensor<2x8xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %4, %6, %7 : tensor<8x16xf32>, tensor<f32>, tensor<8x16xf32>
  }
}
