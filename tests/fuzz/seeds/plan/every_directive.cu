//@ tune T = 32, 64
//@ where T <= cols
//@ temp part f32 [rows, 2]
//@ zero part, y
//@ symbol ns::c_w = x + cols / 2 count min(cols, 64) when=(rows > 1)
//@ symbol c_p = part
//@ launch ns::k<T, float> grid=(rows + 1, 2) block=(T) shared=T*4 cluster=(2, 2) \
//@   args=(x, y + 1, part, scale) when=(rows % 2) cooperative
//@ launch done grid=1 block=1 args=()
