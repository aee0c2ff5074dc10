#pragma once

// The context managers and functions of Python libraries that open or close a region, by qualified
// name, with the meaning of their arguments (docs/facts_format.md, "Python").

#include <optional>
#include <string_view>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/devices.hpp"

namespace mp::lint {

// The effect of `with X(...)` on one device, and which arguments of X decide it. Positions count
// from 0.
struct PythonManager {
    Device device = kUnknownDevice;
    std::int32_t device_at = kNone;   // argument that names the device (device_type=)
    std::int32_t enabled_at = kNone;  // argument that is the flag
    std::int32_t dtype_at = kNone;
    std::string_view flag = "enabled";  // keyword of the flag
    DType dtype = DType::unknown;       // default when no argument gives it; unknown: unchanged
    bool closes = false;                // entering switches off: disable_casts, enable_grad
    bool negated = false;               // a true flag switches off: set_grad_enabled
    bool sure = true;                   // false: the effect depends on an object whose construction is not
                                        // seen
};

// `name` is the manager's name without ".__enter__". nullptr when it is not a known manager.
const PythonManager* python_manager(std::string_view name);

// The effect of this call of `X.__enter__`.
struct PythonEntry {
    Device device = kUnknownDevice;
    bool opens = true;
    bool sure = true;
    bool known = true;             // false: it is unknown whether it opens or switches off
    DType dtype = DType::unknown;  // unknown: unchanged
    Symbol flag;                   // the region opens only while this condition ...
    bool flag_value = true;        // ... has this value; otherwise it switches off
    Symbol when;                   // the manager is entered only while this condition ...
    bool when_value = true;        // ... has this value
};
PythonEntry python_entry(const PythonManager&, const Call& enter);

// The argument passed by keyword, or else at this position after the receiver. nullptr when it is
// absent, or when unpacked arguments hide it.
const Operand* python_argument(const Call&, std::string_view keyword, std::int32_t position,
                               std::size_t receiver);

// "'cuda'" -> the text between the quotes; the text itself when it has none.
std::string_view unquoted(std::string_view constant);

}  // namespace mp::lint
