"""The lit suite of parc: tools of the build first, then LLVM's, on the path.

PARC_VERIFY_ROUNDTRIP=1 in the environment prints and parses the IR again in
every parc-opt run.
"""

import glob
import os
import shutil

import lit.formats

# pylint: disable=undefined-variable
config.name = "parc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "Inputs", "unit"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.parc_build_dir, "tests")

bin_dir = os.path.join(config.parc_build_dir, "bin")
config.environment["PATH"] = os.pathsep.join(
    [config.llvm_tools_dir, bin_dir, config.environment["PATH"]]
)
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --dump-input-filter=error"
# Rank threads share two cores with the other tests: a BLAS that spawns its own
# makes every test slower and none more thorough.
config.environment["OPENBLAS_NUM_THREADS"] = "1"
config.environment["PYTHONPATH"] = os.path.join(config.test_source_root, "support")
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
for name in ("CCACHE_DIR", "CCACHE_SLOPPINESS", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# Emitted programs that have not changed are not compiled again.
if shutil.which("ccache"):
    for language in ("CXX", "CUDA"):
        config.environment[f"CMAKE_{language}_COMPILER_LAUNCHER"] = "ccache"

# The tools are found by the path; only parc-opt may need an argument more.
if os.environ.get("PARC_VERIFY_ROUNDTRIP"):
    config.substitutions.append(
        (r"(?<![\w./%=-])parc-opt(?![\w./-])", "parc-opt --verify-roundtrip")
    )
config.substitutions.append(("%parc_src", config.parc_source_dir))
config.substitutions.append(("%parc_build", config.parc_build_dir))
config.substitutions.append(("%examples", config.parc_source_dir + "/docs/examples"))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%cmake", config.cmake))
config.substitutions.append(("%cxx", config.cxx))

# nvcc: a CUDA toolkit is here, its programs compile and link.
if config.nvcc and os.path.exists(config.nvcc):
    config.available_features.add("nvcc")
    config.substitutions.append(("%nvcc", config.nvcc))
# cuda: a device is here as well, its programs run.
if "nvcc" in config.available_features and glob.glob("/dev/nvidia[0-9]*"):
    config.available_features.add("cuda")
if shutil.which("git"):
    config.available_features.add("git")
