#pragma once

#include <cstdint>

extern "C" {
extern const unsigned char g_model_data[];
extern const uint32_t g_model_data_len;
}
