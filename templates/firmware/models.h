// The models of this firmware. One of them is selected: g_device has its walk and its interpreter,
// and the requests of the link act on it. With one model nothing of this is compiled in.
#pragma once

#include <cstdint>

#include "device.h"
#include "forge_config.h"
#include "forge_status.h"
#include "model_data.h"

namespace forge {

struct BuiltInModel {
  const unsigned char* data;
  const uint32_t* bytes;
  const char* name;
  uint32_t op_hash;
  uint8_t sha256[32];
};

// These three are there only where there are several.
extern const BuiltInModel kModels[kModelCount];
Status SelectAmongModels(uint32_t index);
uint32_t IndexOfSelected();

// Selects a model and checks its bytes; g_device.model may be used only when this returned kOk.
inline Status OpenModel(uint32_t index) {
  if constexpr (kModelCount > 1) {
    return SelectAmongModels(index);
  } else {
    return g_device.model.Open(g_model_data, g_model_data_len);
  }
}

// Selects a model that OpenModel has passed.
inline void SelectModel(uint32_t index) {
  if constexpr (kModelCount > 1) SelectAmongModels(index);
}

inline uint32_t SelectedModel() {
  if constexpr (kModelCount > 1) return IndexOfSelected();
  return 0;
}

inline uint32_t BytesOfModel(uint32_t index) {
  if constexpr (kModelCount > 1) return *kModels[index].bytes;
  return g_model_data_len;
}

// The op hash that was built in.
inline uint32_t OpHashOfModel(uint32_t index) {
  if constexpr (kModelCount > 1) return kModels[index].op_hash;
  return kOpHash;
}

}  // namespace forge
