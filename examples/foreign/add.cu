// y = a + b, one value per thread:
//
//   calorimeter time add.cu --entry 'add<float>' --axis n=1048576 --arg f32:n:in --arg f32:n:in --arg f32:n:out \
//       --arg u64=n --grid '(n+255)/256' --block 256 --bytes '12*n'

template <typename T>
__global__ void add(const T *a, const T *b, T *y, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a[i] + b[i];
    }
}
