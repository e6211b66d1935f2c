# _renyi.pyi - the extension module that cffi makes; its types are C's.
# SPDX-License-Identifier: Apache-2.0
from typing import Any

ffi: Any
lib: Any
