#!/usr/bin/env python3
"""Gets NVRTC and the CUDA device headers as PyPI wheels and unpacks them into one folder.

    cuda_wheels.py FOLDER

The wheels are those of the CUDA major version that the GPU driver serves; without a driver, 13.
A GPU takes what an NVRTC no newer than its driver made, so the minor version stays at or below the
driver's. FOLDER gets lib/ and include/, and the file `complete` at last; a broken download leaves
nothing behind. Nothing is installed into any Python.
"""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile


def driver_version():
    """(major, minor) of the CUDA that the driver serves, or None where there is no driver."""
    try:
        version = ctypes.c_int(0)
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except OSError:
        return None
    return version.value // 1000, version.value % 1000 // 10


def requirements(driver):
    """What to ask pip for. 13.0 serves every driver of major 13 and newer."""
    if driver is None or driver[0] >= 13:
        names = ["nvrtc", "runtime", "crt", "cccl"]
        return [f"nvidia-cuda-{name}==13.0.*" for name in names]
    minor = driver[1] if driver[0] == 12 else 9
    names = ["nvrtc", "runtime", "nvcc", "cccl"]
    return [f"nvidia-cuda-{name}-cu12>=12.0,<12.{minor + 1}" for name in names]


def place_of(member):
    """Where a file of a wheel belongs in FOLDER, or None when it is not wanted."""
    parts = member.split("/")
    base = parts[-1]
    if "include" in parts[:-1]:
        return os.path.join(*parts[parts.index("include"):])
    if "lib" in parts[:-1] and base.startswith("libnvrtc") and ".alt." not in base:
        return os.path.join("lib", base) if ".so" in base else None
    return None


def unpack(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            place = None if info.is_dir() else place_of(info.filename)
            if place is None or ".." in place.split(os.sep):
                continue
            target = os.path.join(folder, place)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with archive.open(info) as source, open(target, "wb") as out:
                shutil.copyfileobj(source, out)


def fetch(folder):
    driver = driver_version()
    wanted = requirements(driver)
    why = f"driver for CUDA {driver[0]}.{driver[1]}" if driver else "no GPU driver here"
    print(f"cuda: no CUDA toolkit found; taking NVRTC and device headers from PyPI ({why}):")
    print("cuda:   " + " ".join(wanted) + f" into {folder} (NVIDIA's licence applies)", flush=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as temp:
        wheels = os.path.join(temp, "wheels")
        pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download",
               "--no-deps", "--only-binary", ":all:", "-d", wheels]
        if subprocess.run(pip + wanted).returncode != 0:
            sys.exit("cuda: the download failed; install a CUDA toolkit and name it in RUNG_CUDA_HOME")
        new = os.path.join(temp, "cuda")
        for wheel in sorted(os.listdir(wheels)):
            unpack(os.path.join(wheels, wheel), new)
        with open(os.path.join(new, "complete"), "w") as out:
            out.write("\n".join(sorted(os.listdir(wheels))) + "\n")
        if os.path.islink(folder):
            os.unlink(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(new, folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    fetch(os.path.abspath(sys.argv[1]))
