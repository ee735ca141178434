//! tolerance: reduction
//! meshes: 2x2x2
module @parts_of_groups {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @same = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<8x8xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>, tensor<16x4xf32>) {
    %0:3 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y":(1)2}]>, <@mesh, [{"x"}, {"y":(2)2}]>, <@mesh, [{"x"}, {"y":(1)2}]>] manual_axes={"x", "y"} (%arg1: tensor<4x2xf32>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @same, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y", sub_axis_info = (2)2>]>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
      %2 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "high", size = 2>, #stablehlo.mesh_axis<name = "low", size = 2>]>, axes = [#stablehlo.axis_ref<name = "high">]>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
      %3 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#sdy<axis_ref"y":(2)2>]>, use_global_device_ids}> : (tensor<4x2xf32>) -> tensor<8x2xf32>
      sdy.return %1, %2, %3 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<8x2xf32>
    } : (tensor<8x8xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>, tensor<16x4xf32>)
    return %0#0, %0#1, %0#2 : tensor<4x4xf32>, tensor<8x4xf32>, tensor<16x4xf32>
  }
}
