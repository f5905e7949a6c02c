#include "link.h"

#include <cstring>

#include "arena.h"
#include "device.h"
#include "forge_config.h"
#include "frame.h"
#include "inference.h"
#include "message.h"
#include "model_data.h"
#include "models.h"
#include "self_check.h"

namespace forge {
namespace {

constexpr uint8_t kProtocolVersion = 1;
constexpr uint8_t kAnswerBit = 0x80;
constexpr uint8_t kProgress = 0xF0;
constexpr uint8_t kErrorAnswer = 0xFF;
constexpr uint8_t kReset = 0x7E;
// Without the custom name; the byte before it is the name's length.
constexpr uint32_t kOpBytes = 9;
constexpr uint32_t kOffenderBytes = 13;

constexpr const char* kNames[] = {kBoardName, kRuntimeName, kRuntimeVersion, kKernelSet,
                                  kForgeVersion};
constexpr uint32_t kNameCount = sizeof(kNames) / sizeof(kNames[0]);

static_assert(sizeof(FaultRecord) == 8 * sizeof(uint32_t), "SELFTEST sends the record as it is");

enum ResetMode : uint8_t { kSystemReset, kLeaveEmulator };

using Handler = Status (*)(Request&);

enum CommandFlag : uint8_t {
  kAlways = 0,
  kReady = 1,        // only when inference is not blocked
  kDataFollows = 2,  // the body may be longer than `bytes`
};

struct Command {
  uint8_t type;
  uint8_t bytes;  // of the body
  uint8_t flags;
  Handler handler;
};

// The answer stays whole, so that a repeated request gets it again and is not run twice.
struct LastAnswer {
  uint8_t request_type;
  uint8_t request_sequence;
  bool is_due;      // the request still runs
  uint32_t length;  // 0 before the first answer
  uint32_t request_crc;
};

struct Progress {
  bool active;          // no request runs kernels before the first StartProgress, but the boot does
  uint32_t last_ticks;  // the lower half is enough for the time between two
  uint32_t loops[2];    // done and in all, as PROGRESS sends them
  uint64_t reporting_ticks;
};

// One object, because each costs its address in every function that uses it.
struct {
  LastAnswer last;
  FrameReceiver receiver;
  uint8_t answer[kFrameBytes];
} g_link = {};

Progress g_progress;

bool IsReady() { return g_device.interpreter != nullptr && g_device.fault == nullptr; }

Status AnswerInfo(Request&) {
  Put8(kProtocolVersion);
  Put16(kLinkMtu);
  Put8(IsReady());
  Put8(g_device.reset_cause);
  Put8(static_cast<uint8_t>(BoardCounterKind()));
  Put32(BoardTicksPerSecond());
  PutBytes(kBuildId, sizeof(kBuildId));
  PutBytes(kModelSha256, sizeof(kModelSha256));
  Put32(g_model_data_len);
  Put32(kOpHash);
  Put16(kOpCount);
  Put32(ArenaBytes());
  Put32(g_device.arena_used_bytes);
  Put16(sizeof(TfLiteTensor));
  Put16(sizeof(TfLiteEvalTensor));
  Put32(StackSize());
  Put32(StackHighWater());
  // Texts that do not fit are cut, but each has its length.
#pragma GCC unroll 1
  for (uint32_t i = 0; i < kNameCount; ++i) PutString(kNames[i], kNameCount - 1 - i);
  return Status::kOk;
}

Status AnswerOps(Request& request) {
  const uint32_t from = Get<uint16_t>(request.body, 0);
  uint8_t* head = PutListHead();
  uint32_t next = from;
  for (; next < static_cast<uint32_t>(kOpCount); ++next) {
    const OpEntry& op = kOps[next];
    // The first is sent in any case, its name cut to what fits: the host asks on until it has all.
    if (next != from && kOpBytes + std::strlen(op.custom_name) > AnswerRoom()) break;
    Put32(static_cast<uint32_t>(op.builtin_code));
    Put32(op.max_version);
    PutString(op.custom_name, 0);
  }
  FillListHead(head, kOpCount, next - from);
  return Status::kOk;
}

// Goes on with the next model where the selected one has no more.
bool NextOffenderOfAll(Offender* offender) {
  while (!NextOffender(g_device.model, *g_device.resolver, offender)) {
    if (SelectedModel() + 1 == kModelCount) return false;
    SelectModel(SelectedModel() + 1);
    *offender = Offender();
  }
  return true;
}

void PutOffenders() {
  uint8_t* head = PutListHead();
  uint32_t total = 0;
  uint32_t sent = 0;
  // There is a resolver only when every model has passed its check.
  if (g_device.resolver != nullptr) {
    for (Offender offender; NextOffenderOfAll(&offender); ++total) {
      const uint32_t bytes = kOffenderBytes + std::strlen(offender.op.custom_name);
      if (sent != total || (sent != 0 && bytes > AnswerRoom())) continue;
      Put32(static_cast<uint32_t>(offender.op.builtin_code));
      Put32(offender.op.version);
      Put32(offender.supported_version);
      PutString(offender.op.custom_name, 0);
      ++sent;
    }
  }
  FillListHead(head, total, sent);
}

Status AnswerSelfTest(Request&) {
  const uint32_t selected = SelectedModel();
  SelectModel(0);
  Put8(kBootSteps);
  PutBytes(g_device.steps, sizeof(g_device.steps));
  Put32(g_device.model.op_hash());
  Put8(StackCanaryIntact());
  const FaultRecord* fault = g_device.fault;
  Put8(fault != nullptr);
  if (fault != nullptr) PutBytes(fault, sizeof(*fault));
  PutOffenders();
  SelectModel(selected);
  return Status::kOk;
}

Status AnswerSelect(Request& request) {
  if constexpr (kModelCount > 1) {
    const uint32_t index = request.body[0];
    if (index >= kModelCount) return Status::kBadRequest;
    SelectModel(index);
    const BuiltInModel& model = kModels[index];
    Put8(kModelCount);
    Put32(*model.bytes);
    PutBytes(model.sha256, sizeof(model.sha256));
    Put32(g_device.model.op_hash());
    PutString(model.name, 0);
  }
  return Status::kOk;
}

Status AnswerArena(Request& request) {
  SetNextArenaBytes(Get<uint32_t>(request.body, 0));
  return Status::kOk;
}

// The reset itself comes when the answer is out; see HandleFrame.
Status AnswerReset(Request& request) {
  return request.body[0] <= kLeaveEmulator ? Status::kOk : Status::kBadRequest;
}

constexpr Command kCommands[] = {
    {0x01, 0, kAlways, AnswerInfo},
    {0x02, 2, kAlways, AnswerOps},
    {0x03, 0, kAlways, AnswerSelfTest},
    {0x04, 2, kReady, AnswerTensors},
    {0x10, 6, kReady | kDataFollows, AnswerWrite},
    {0x11, 4, kReady, AnswerInvoke},
    {0x12, 8, kReady, AnswerRead},
    {0x13, 2, kReady, AnswerCrc},
    {0x14, 6, kReady, AnswerFill},
    {0x15, 0, kReady, AnswerForget},
    {0x20, 8, kReady, AnswerSoak},
    {0x21, 2, kReady, AnswerProfile},
    {kReset, 1, kAlways, AnswerReset},
};
constexpr Command kSelect = {0x05, 1, kReady, AnswerSelect};
constexpr Command kArena = {0x16, 4, kAlways, AnswerArena};
constexpr Command kLayer = {0x22, 8, kReady, AnswerLayer};

Status RefuseInference(Request& request) {
  if (g_device.fault != nullptr) {
    request.detail = g_device.fault->pc;
    return static_cast<Status>(g_device.fault->kind);
  }
  while (g_device.steps[request.detail] == Status::kOk) ++request.detail;
  return Status::kNotReady;
}

Status RunCommand(const Command& command, Request& request) {
  if ((command.flags & kReady) != 0 && !IsReady()) return RefuseInference(request);
  const bool more = request.bytes > command.bytes;
  if (request.bytes < command.bytes || (more && (command.flags & kDataFollows) == 0)) {
    return Status::kBadRequest;
  }
  return command.handler(request);
}

Status Run(uint8_t type, Request& request) {
  for (const Command& command : kCommands) {
    if (command.type == type) return RunCommand(command, request);
  }
  if constexpr (kModelCount > 1) {
    if (type == kSelect.type) return RunCommand(kSelect, request);
  }
  if constexpr (kKeepTensors) {
    if (type == kLayer.type) return RunCommand(kLayer, request);
  }
  if constexpr (kMeasuresArena) {
    if (type == kArena.type) return RunCommand(kArena, request);
  }
  return Status::kUnknownRequest;
}

void SendAnswer() { SendFrame(g_link.answer, g_link.last.length); }

// Puts the head before the body that the handler wrote, or an error answer in its place.
void FinishAnswer(Status status, uint32_t detail) {
  g_link.answer[0] = g_link.last.request_type | kAnswerBit;
  g_link.answer[1] = g_link.last.request_sequence;
  if (status != Status::kOk) {
    g_link.answer[0] = kErrorAnswer;
    StartAnswer(g_link.answer + kHeaderBytes, kLinkMtu);
    Put8(g_link.last.request_type);
    Put16(static_cast<uint32_t>(status));
    Put32(detail);
  }
  g_link.last.length = static_cast<uint32_t>(AnswerEnd() - g_link.answer);
  g_link.last.is_due = false;
  SendAnswer();
}

void SendProgress() {
  uint8_t frame[kHeaderBytes + sizeof(g_progress.loops) + kCrcBytes];
  frame[0] = kProgress;
  frame[1] = g_link.last.request_sequence;
  std::memcpy(frame + kHeaderBytes, g_progress.loops, sizeof(g_progress.loops));
  SendFrame(frame, kHeaderBytes + sizeof(g_progress.loops));
  g_progress.last_ticks = static_cast<uint32_t>(BoardTicks());
}

void HandleFrame() {
  const uint8_t* frame = g_link.receiver.frame();
  if (g_link.last.length != 0 && g_link.last.request_crc == g_link.receiver.crc() &&
      g_link.last.request_type == frame[0] && g_link.last.request_sequence == frame[1]) {
    SendAnswer();
    return;
  }
  g_link.last.request_type = frame[0];
  g_link.last.request_sequence = frame[1];
  g_link.last.request_crc = g_link.receiver.crc();
  g_link.last.is_due = true;
  StartAnswer(g_link.answer + kHeaderBytes, kLinkMtu);
  Request request = {frame + kHeaderBytes, g_link.receiver.length() - kHeaderBytes, 0};
  const Status status = Run(frame[0], request);
  FinishAnswer(status, request.detail);
  if (frame[0] != kReset || status != Status::kOk) return;
  if (request.body[0] == kLeaveEmulator) BoardExit(0);
  BoardReset();
}

}  // namespace

void ServeLink() {
  for (;;) {
    const int byte = UartRead();
    if (byte >= 0 && g_link.receiver.Feed(static_cast<uint8_t>(byte))) HandleFrame();
  }
}

void AnswerFault(const FaultRecord& fault) {
  if (g_link.last.is_due) FinishAnswer(static_cast<Status>(fault.kind), fault.pc);
}

void StartProgress(uint32_t total) {
  g_progress.loops[0] = 0;
  g_progress.loops[1] = total;
  g_progress.active = true;
  SendProgress();
}

void ReportProgress(uint32_t done) {
  g_progress.loops[0] = done;
  KeepAlive();
}

void KeepAlive() {
  const uint32_t ticks_per_second = BoardTicksPerSecond();
  if (!g_progress.active || ticks_per_second == 0) return;
  const uint32_t now = static_cast<uint32_t>(BoardTicks());
  if (now - g_progress.last_ticks < ticks_per_second / 2) return;
  SendProgress();
  g_progress.reporting_ticks += g_progress.last_ticks - now;
}

uint64_t InferenceTicks() { return BoardTicks() - g_progress.reporting_ticks; }

}  // namespace forge
