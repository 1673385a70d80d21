"""A document's shape never changes under the same format: an older replica would drop what is new.

When this fails, raise the format of the document that changed and note its new shape here. Before
the first release the shapes of format 1 may still change.
"""

from hashlib import sha256

import msgspec
import pytest

from core_console.model.capex_document import CAPEX_FORMAT, CapexDocument
from core_console.model.document import FORMAT, Document, Versioned
from core_console.model.reports import REPORTS_FORMAT, ReportsDocument

SHAPES = {
    (Document, 1): "8838770ec9dad3af",
    (CapexDocument, 1): "0a06e49be60a0777",
    (ReportsDocument, 1): "1609453d850b6029",
}


def shape(kind: type[Versioned]) -> str:
    """Return the digest of everything that the document can hold."""
    schema = msgspec.json.schema(kind)
    return sha256(msgspec.json.encode(schema, order="sorted")).hexdigest()[:16]


@pytest.mark.parametrize(
    ("kind", "version"),
    [(Document, FORMAT), (CapexDocument, CAPEX_FORMAT), (ReportsDocument, REPORTS_FORMAT)],
    ids=["metadoc", "capex", "reports"],
)
def test_the_shape_is_the_one_that_the_format_stands_for(
    kind: type[Versioned], version: int
) -> None:
    assert shape(kind) == SHAPES[kind, version]
