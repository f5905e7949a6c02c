// Lines of text to the serial port, between the frames of the link.
#pragma once

namespace forge {

// Writes a line. Knows %s, %u and %x (eight digits); all numbers are 32 bits long. The runtime's
// messages go through DebugLog, which knows more and is not linked in release builds.
void PrintLine(const char* format, ...);

}  // namespace forge
