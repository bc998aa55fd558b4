# Sourced by the scripts that run several processes on one GPU: without NVIDIA's multi-process service they take turns,
# and work made of small kernels gets no faster by running side by side.
share_gpu() {
    command -v nvidia-cuda-mps-control > /dev/null || return 1
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps CUDA_MPS_LOG_DIRECTORY=/tmp/mps-log
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    nvidia-cuda-mps-control -d &&
        timeout 30 "${PYTHON:-python3}" -c "import torch; torch.ones(1, device='cuda').sum().item()"
}
if share_gpu > /dev/null 2>&1; then
    echo "processes share the GPU through its multi-process service"
else
    echo quit | timeout 5 nvidia-cuda-mps-control > /dev/null 2>&1
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    echo "no multi-process service here: processes take turns on the GPU"
fi
