//@ tune T = 32, 64
//@ where T <= cols
//@ temp part f32 [rows, 2]
//@ zero part, y
//@ symbol ns::c_w = x + cols / 2 count min(cols, 64) when=(rows > 1)
//@ symbol c_p = part
//@ tensormap m = x box=(T, 4) swizzle=128 l2=128
//@ tensormap n = part + 16 dims=(16, rows / 2) strides=(16 * 4) box=(4, 1) elements=(1, 2) oob=nan
//@ launch ns::k<T, float> grid=(rows + 1, 2) block=(T) shared=T*4 cluster=(2, 2) \
//@   args=(x, y + 1, part, scale, m, n) when=(rows % 2) cooperative
//@ launch done grid=1 block=1 args=()
