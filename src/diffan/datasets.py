"""Real and pseudo-real data sets with a graph to compare against: Sachs and SynTReN.

A file is looked for in the folder that $DIFFAN_DATA names, then in the user's cache; failing both it is downloaded
into the cache and kept only if its SHA-256 is the published one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.error import HTTPError
from urllib.request import urlopen

from diffan.dag import Dag
from diffan.errors import DiffanError, InputError
from diffan.progress import Progress, Silent

if TYPE_CHECKING:
    import pandas as pd

BASE_URL = "https://raw.githubusercontent.com/diffan-project/diffan-data/v1"  # the project's data release
TIMEOUT_SECONDS = 30.0

SHA256 = {
    "sachs/data.csv": "f979eea48aa7faeb9a27919593e3ee6d600aa93de997c570ee4d9be02a7e8a16",
    "sachs/truth.csv": "b35991595ca8dedf85357bc03cdba17f7018a8bc3596934136ced77de761d8b1",
    "syntren/data1.csv": "9693e77d3a07740158f90ee533c6452aad091143096c6c430bf236dae25683e0",
    "syntren/truth1.csv": "e19835083ccec548d31795310f0a6dc90e534b245f96a93b1d1a0dc3e5435152",
    "syntren/data2.csv": "a33d14ef6d5aaafc7bb2f5d14567629733adcde83129ac145e2035dba2f6719d",
    "syntren/truth2.csv": "7e8377afd39b86dc3cf0bb34e6898ee2653af9414fc6ba811d5716189f5f64ae",
    "syntren/data3.csv": "6b6df2aba97ea52d320bab34021a0432078d62440ae0e7284b11eff5e449b7c1",
    "syntren/truth3.csv": "3cc3ef4ec5b64e2a7e61a31dd4799e0a330913bc5e2020c03bd34a874445eefc",
    "syntren/data4.csv": "5a67ebb304017d9434b70915c962fcfdb751f374d6e961362601d61fee109623",
    "syntren/truth4.csv": "32f3d3f66ba7689a65c732f2096a33621f61fb5ef3bf4ccc908fee9fe63b47ef",
    "syntren/data5.csv": "473c3a4057f564edb95e8772dbdcf5a1d1db1caa965c0b2d7ae9841b21957e2f",
    "syntren/truth5.csv": "90c5761a3aa4f6ddc8b863adcae37bbcf82758050f5f6c24374554c4378a0283",
    "syntren/data6.csv": "b36805ed9f053c813c2ead4e1fd2bf9c2875d56d488f885ea664e3ce55033b8d",
    "syntren/truth6.csv": "28891926c679faad1d0c1152f688dbcbdf5d10d152c229cd2db02ddcbc6864b3",
    "syntren/data7.csv": "3662c8bd598aa95444096a6a14520fe5c6831f2a31a619056311141ee4bdcc8b",
    "syntren/truth7.csv": "5ab6257c1233d2a46045ee26639daa31cba3e05f44bf873e3a258debee890b97",
    "syntren/data8.csv": "d3fe16e880cbed2a48c003ce14b6189c51e8a9daae1e01f4fc4a7a909810ebdc",
    "syntren/truth8.csv": "8a80810ab0adf3bdc8779b83e04fcd1979072841cca7395ce78f44e6c76d9249",
    "syntren/data9.csv": "015e02e8c75ab3e098d12d318f06b22e88cab6b8b3ac30a7d95eb4dc67012027",
    "syntren/truth9.csv": "4ee3990e0dc06318da430f288bc3d98f4306d20d97d0b794b255f5f50f2bef5a",
    "syntren/data10.csv": "820bc5ef81402dd601a69a43d804dd58687aa68e65cc7cc3a758e9e48ab079f2",
    "syntren/truth10.csv": "c3b1233d50d26c96801b9cfae87bd2e4e01cfb6383102f6d669490550695cf23",
}


class DownloadError(DiffanError, OSError):
    """A data file is neither here nor to be had; the message says which file to put where."""


def load_sachs(*, base_url: str = BASE_URL, progress: Progress | None = None) -> tuple[pd.DataFrame, Dag]:
    """Protein signalling in human cells (Sachs et al., 2005): 853 observational rows, 11 proteins, 17 edges."""
    return _load("sachs/data.csv", "sachs/truth.csv", base_url, progress)


def load_syntren(
    index: int, *, base_url: str = BASE_URL, progress: Progress | None = None
) -> tuple[pd.DataFrame, Dag]:
    """One of ten sets from the SynTReN simulator (Van den Bulcke et al., 2006): 500 rows of 20 genes; index 1 to 10."""
    if isinstance(index, bool) or index not in range(1, 11):
        raise InputError(f"The 'index' parameter must be a whole number from 1 to 10. Got {index!r} instead.")
    return _load(f"syntren/data{index}.csv", f"syntren/truth{index}.csv", base_url, progress)


def _load(data: str, truth: str, base_url: str, progress: Progress | None) -> tuple[pd.DataFrame, Dag]:
    import pandas as pd

    shown = progress or Silent()
    frame = pd.read_csv(_locate(data, base_url, shown)).astype(float)
    dag = Dag.from_frame(pd.read_csv(_locate(truth, base_url, shown), index_col=0))
    columns = [str(name) for name in frame.columns]
    if sorted(columns) != sorted(dag.names):
        raise InputError(f"The columns of {data} must be the nodes of {truth}; replace both files.")
    return frame, dag.relabelled([dag.index(name) for name in columns])


def _locate(name: str, base_url: str, progress: Progress) -> Path:
    folder = os.environ.get("DIFFAN_DATA")
    if folder and (Path(folder) / name).is_file():
        return Path(folder) / name
    cached = _cache_folder() / name
    if not cached.is_file():
        _download(name, cached, base_url, progress)
    return cached


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diffan"


def _download(name: str, target: Path, base_url: str, progress: Progress) -> None:
    """Fetch beside the target and rename when it is whole and right, so that no half file is ever found."""
    address = f"{base_url.rstrip('/')}/{name}"
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            digest = _copy(address, file, name, progress)
        if digest != SHA256[name]:
            raise DownloadError(
                f"{address} is not the published {name}: its SHA-256 is {digest}, not {SHA256[name]}. {_advice(name)}"
            )
        Path(partial).replace(target)
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, DownloadError):
            raise
        raise DownloadError(f"Could not download {address} ({error}). {_advice(name)}") from error
    finally:
        Path(partial).unlink(missing_ok=True)


def _copy(address: str, file: BinaryIO, name: str, progress: Progress) -> str:
    """Stream an address into a file and return its SHA-256."""
    digest = hashlib.sha256()
    try:
        response = urlopen(address, timeout=TIMEOUT_SECONDS)
    except HTTPError as error:
        error.close()
        raise
    with response:
        length = response.headers.get("Content-Length")
        with progress.task(f"download {name}", int(length) if length else None) as bar:
            while block := response.read(1 << 16):
                file.write(block)
                digest.update(block)
                bar.advance(len(block))
    return digest.hexdigest()


def _advice(name: str) -> str:
    return (
        f"Put the file at {_cache_folder() / name}, or set DIFFAN_DATA to a folder that holds it as {name}."
    )
