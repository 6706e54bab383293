// Number types of the payload, converted one value at a time in the most obvious way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace railhead::reference {

enum class NumberType : std::uint8_t { raw, bf16, fp16, fp32 };  // raw: bytes without a meaning, dispatch only

// Bytes of one element; raw counts bytes.
std::size_t size_of(NumberType type);
std::string name_of(NumberType type);

// Exact: every bf16 and fp16 value is an fp32 value.
float bf16_to_float(std::uint16_t bits);
float fp16_to_float(std::uint16_t bits);
// Round to nearest, ties to even; subnormals exact; overflow to infinity; every NaN to a quiet NaN.
std::uint16_t float_to_bf16(float value);
std::uint16_t float_to_fp16(float value);

// Element `index` of an array of `type` (not raw) at any alignment.
float load(NumberType type, const std::byte* data, std::size_t index);
void store(NumberType type, std::byte* data, std::size_t index, float value);

// The first element in which two arrays differ, as a sentence with its index and both values; nothing if they agree.
// Bits must be equal, except that any quiet NaN equals any quiet NaN (not for raw: bytes are bytes). Sizes must agree.
std::optional<std::string> first_difference(NumberType type, std::span<const std::byte> expected,
                                            std::span<const std::byte> actual);

}  // namespace railhead::reference
