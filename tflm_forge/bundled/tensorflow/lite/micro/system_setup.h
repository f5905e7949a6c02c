#ifndef TENSORFLOW_LITE_MICRO_SYSTEM_SETUP_H_
#define TENSORFLOW_LITE_MICRO_SYSTEM_SETUP_H_

namespace tflite {

// Does nothing here: the board's start-up code has already set the target up.
inline void InitializeTarget() {}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_SYSTEM_SETUP_H_
