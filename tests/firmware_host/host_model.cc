// The model of the fake firmware: a file that is read before the firmware starts, into what the
// firmware sees as flash.
#include "host_model.h"

#include <cstdint>
#include <cstdio>

extern "C" {
alignas(16) unsigned char g_model_data[1 << 20];
uint32_t g_model_data_len;
}

bool LoadModel(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return false;
  g_model_data_len = static_cast<uint32_t>(std::fread(g_model_data, 1, sizeof(g_model_data), file));
  std::fclose(file);
  return true;
}
