"""What reflection tells: the whole contract, as protoc describes it to other languages.

Owns two things that Python's descriptors leave out and grpcurl needs: the JSON names of fields
(without them it prints snake_case), and methods as symbols. Never
describes anything that is not in the default pool.
"""

from typing import TYPE_CHECKING, cast

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

if TYPE_CHECKING:
    from google.protobuf.descriptor_pool import DescriptorPool


class _File:
    """A file with its fields' JSON names."""

    def __init__(self, file: FileDescriptor) -> None:
        self._file = file
        self.name = file.name

    @property
    def dependencies(self) -> "list[_File]":
        return [_File(each) for each in self._file.dependencies]

    def CopyToProto(self, proto: FileDescriptorProto) -> None:  # noqa: N802 -- protobuf's name
        self._file.CopyToProto(proto)
        for message in proto.message_type:
            _name_fields(message, self._file.message_types_by_name[message.name])


def _name_fields(proto: DescriptorProto, message: Descriptor) -> None:
    for field in proto.field:
        field.json_name = message.fields_by_name[field.name].json_name
    for nested in proto.nested_type:
        _name_fields(nested, message.nested_types_by_name[nested.name])


class _Pool:
    """The default pool, as far as reflection reads it."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def FindFileByName(self, name: str) -> _File:  # noqa: N802 -- protobuf's name
        return _File(self._pool.FindFileByName(name))

    def FindFileContainingSymbol(self, symbol: str) -> _File:  # noqa: N802 -- protobuf's name
        try:
            return _File(self._pool.FindFileContainingSymbol(symbol))
        except KeyError:
            # The pool knows a method, but not as a symbol.
            return _File(self._pool.FindMethodByName(symbol).containing_service.file)

    def FindMessageTypeByName(self, name: str) -> Descriptor:  # noqa: N802 -- protobuf's name
        return self._pool.FindMessageTypeByName(name)

    def FindExtensionByNumber(  # noqa: N802 -- protobuf's name
        self, message: Descriptor, number: int
    ) -> FieldDescriptor:
        return self._pool.FindExtensionByNumber(message, number)

    def FindAllExtensions(  # noqa: N802 -- protobuf's name
        self, message: Descriptor
    ) -> list[FieldDescriptor]:
        return list(self._pool.FindAllExtensions(message))


def described() -> "DescriptorPool":
    """Return the pool that reflection reads."""
    return cast("DescriptorPool", _Pool())
