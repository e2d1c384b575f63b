"""A run's folder on any file system that pyarrow reaches: whole objects, written durably and atomically."""

import os
import uuid
from pathlib import Path
from urllib.parse import quote

from pyarrow import fs

from trainables.errors import InputError


class Storage:
    """A folder on a local disk, NFS or an object store. Names are relative, with `/` between their parts."""

    def __init__(self, filesystem: fs.FileSystem, root: str, location: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self.location = location
        """As a person would type it again; `open` takes it."""

    @classmethod
    def open(cls, location: str) -> "Storage":
        """`location` is a path (relative to the working folder) or a URI (`s3://`, `gs://`, `file://`)."""
        if "://" not in location:
            path = Path(location).expanduser().absolute()
            return cls(fs.LocalFileSystem(), str(path), str(path))
        try:
            filesystem, root = fs.FileSystem.from_uri(location)
        except (OSError, ValueError) as error:
            raise InputError(
                f"storage {location}: cannot be opened ({error}); give a folder, or a URI such as s3://bucket/runs"
            ) from error
        if not root.strip("/"):
            raise InputError(f"storage {location}: names no folder; give one, such as s3://bucket/runs")
        return cls(filesystem, root, location)

    def folder(self, name: str) -> "Storage":
        """The folder `name` inside this one; it need not exist yet."""
        if "://" not in self.location:
            return Storage(self._filesystem, self._path(name), f"{self.location.rstrip('/')}/{name}")
        place, mark, options = self.location.partition("?")
        return Storage(self._filesystem, self._path(name), f"{place.rstrip('/')}/{quote(name)}{mark}{options}")

    @property
    def is_local(self) -> bool:
        return isinstance(self._filesystem, fs.LocalFileSystem)

    @property
    def local_path(self) -> Path:
        """The folder as a path. Raises `ValueError` on an object store."""
        if not self.is_local:
            raise ValueError(f"{self.location} is not a local folder")
        return Path(self._root)

    def write(self, name: str, data: bytes) -> None:
        """Afterwards the object is there whole and durable; a reader never sees half of it."""
        if self.is_local:
            _write_local(Path(self._path(name)), data)
            return
        path = self._path(name)
        try:
            stream = self._filesystem.open_output_stream(path)
        except FileNotFoundError:  # a file system that has folders, unlike an object store
            self._filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            stream = self._filesystem.open_output_stream(path)
        with stream:
            stream.write(data)

    def read(self, name: str) -> bytes:
        """Raises `FileNotFoundError` where there is no such object."""
        with self._filesystem.open_input_stream(self._path(name)) as stream:
            data: bytes = stream.read()
        return data

    def names(self, suffix: str = "") -> list[str]:
        """Sorted names of the objects directly in this folder; none where the folder is not there."""
        return sorted(
            info.base_name
            for info in self._filesystem.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
            if info.type == fs.FileType.File and info.base_name.endswith(suffix) and not info.base_name.startswith(".")
        )

    def folders(self) -> list[str]:
        """Sorted names of the folders directly in this one."""
        return sorted(
            info.base_name
            for info in self._filesystem.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
            if info.type == fs.FileType.Directory
        )

    def has(self, name: str) -> bool:
        info: fs.FileInfo = self._filesystem.get_file_info(self._path(name))
        return bool(info.type != fs.FileType.NotFound)

    def delete(self, name: str) -> None:
        """Deletes an object; one that is not there is no error."""
        if self.has(name):
            self._filesystem.delete_file(self._path(name))

    def delete_folder(self, name: str) -> None:
        """Deletes the folder `name` and all in it; one that is not there is no error."""
        if self.has(name):
            self._filesystem.delete_dir(self._path(name))

    def _path(self, name: str) -> str:
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"{name!r} would leave {self.location}")
        return f"{self._root}/{name}"


def _write_local(path: Path, data: bytes) -> None:
    """Written beside, flushed to the disk, renamed: a crash leaves the old object or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
