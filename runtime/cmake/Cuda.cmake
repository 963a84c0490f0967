# The cuda backend: nvcc for kernels, cuBLASLt linked, NCCL loaded at run time
# (only its header is needed), so that one binary starts everywhere.
find_package(CUDAToolkit REQUIRED)
find_path(PARC_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)

string(REPLACE ";" "," PARC_CUDA_HOST_FLAGS "${PARC_KERNEL_FLAGS}")
# 2810: nvcc sees an ignored [[nodiscard]] value in every assignment; g++ checks
# the same sources.
set(PARC_CUDA_FLAGS -diag-suppress=2810 --extended-lambda --expt-relaxed-constexpr
  -Xcompiler=${PARC_CUDA_HOST_FLAGS})

target_sources(parc_runtime PRIVATE
  lib/cuda/CudaDevice.cu
  lib/cuda/CudaEndpoint.cpp
  lib/cuda/CudaLaunch.cpp
  lib/cuda/Nccl.cpp
  lib/cuda/Store.cpp)
target_compile_definitions(parc_runtime PUBLIC PARC_CUDA)
target_include_directories(parc_runtime PRIVATE ${PARC_NCCL_INCLUDE})
target_compile_options(parc_runtime PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:${PARC_CUDA_FLAGS}>")
target_link_libraries(parc_runtime PUBLIC
  CUDA::cudart CUDA::cublasLt ${CMAKE_DL_LIBS})
target_compile_options(parc_kernels INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:${PARC_CUDA_FLAGS}>")
