#pragma once

// The context managers and functions of Python libraries that open or close a region, by qualified
// name, and what their arguments mean (docs/facts_format.md, "Python").

#include <optional>
#include <string_view>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/devices.hpp"

namespace mp::lint {

// How `with X(...)` acts on one device, and where X's arguments say so. Positions count from 0.
struct PythonManager {
    Device device = kUnknownDevice;
    std::int32_t device_at = kNone;   // argument that names the device (device_type=)
    std::int32_t enabled_at = kNone;  // argument that is the flag
    std::int32_t dtype_at = kNone;
    std::string_view flag = "enabled";  // keyword of the flag
    DType dtype = DType::unknown;       // when no argument says; unknown: as it was before
    bool closes = false;                // entering switches off: disable_casts, enable_grad
    bool negated = false;               // a true flag switches off: set_grad_enabled
    bool sure = true;                   // false: what it is depends on an object nobody has seen
};

// Of "torch.autocast", the manager's name without ".__enter__"; nullptr when it is none.
const PythonManager* python_manager(std::string_view name);

// What one entered manager does at this call of `X.__enter__`.
struct PythonEntry {
    Device device = kUnknownDevice;
    bool opens = true;
    bool sure = true;
    bool known = true;             // false: nothing here tells whether it opens or switches off
    DType dtype = DType::unknown;  // unknown: as it was
    Symbol flag;                   // opens only while this is ...
    bool flag_value = true;        // ... so; else it switches off
    Symbol when;                   // entered only while this holds ...
    bool when_value = true;        // ... or does not
};
PythonEntry python_entry(const PythonManager&, const Call& enter);

// The argument passed by keyword, or else at this position after the receiver; nullptr when neither is
// there, or when unpacked arguments hide it.
const Operand* python_argument(const Call&, std::string_view keyword, std::int32_t position,
                               std::size_t receiver);

// "'cuda'" -> the text between the quotes; the text itself when it has none.
std::string_view unquoted(std::string_view constant);

}  // namespace mp::lint
