#include "link.h"

#include <cstring>

#include "arena.h"
#include "device.h"
#include "forge_config.h"
#include "frame.h"
#include "inference.h"
#include "message.h"
#include "model_data.h"
#include "self_check.h"

namespace forge {
namespace {

constexpr uint8_t kProtocolVersion = 1;
constexpr uint8_t kAnswerBit = 0x80;
constexpr uint8_t kProgress = 0xF0;
constexpr uint8_t kErrorAnswer = 0xFF;
constexpr uint8_t kResetRequest = 0x7E;
constexpr uint32_t kProgressBytes = 2 * sizeof(uint32_t);
// Without the custom name; the byte before it is the name's length.
constexpr uint32_t kOpBytes = 9;
constexpr uint32_t kOffenderBytes = 13;

enum ResetMode : uint8_t { kSystemReset, kLeaveEmulator };

using Handler = Status (*)(Exchange&);

struct Request {
  uint8_t type;
  bool needs_inference;
  bool after_fault;  // still answered when the processor has faulted
  Handler handler;
};

// The answer stays whole, so that a repeated request gets it again and is not run twice.
struct LastAnswer {
  uint8_t bytes[kFrameBytes];
  uint32_t length;  // 0 before the first answer
  uint8_t request[kHeaderBytes];
  uint32_t request_crc;
};

struct Progress {
  bool active;
  uint32_t done, total;
  uint64_t last_ticks;
  uint64_t reporting_ticks;
};

FrameReceiver g_receiver;
LastAnswer g_last;
Progress g_progress;
bool g_request_runs;

Status AnswerInfo(Exchange& exchange) {
  if (!exchange.in.Complete()) return Status::kBadRequest;
  BodyWriter& out = exchange.out;
  const bool ready = g_device.interpreter != nullptr && g_device.fault == nullptr;
  out.Put8(kProtocolVersion);
  out.Put16(kLinkMtu);
  out.Put8(ready);
  out.Put8(g_device.reset_cause);
  out.Put8(static_cast<uint8_t>(BoardCounterKind()));
  out.Put32(BoardTicksPerSecond());
  out.PutBytes(kBuildId, sizeof(kBuildId));
  out.PutBytes(kModelSha256, sizeof(kModelSha256));
  out.Put32(g_model_data_len);
  out.Put32(kOpHash);
  out.Put16(kOpCount);
  out.Put32(ArenaBytes());
  out.Put32(g_device.arena_used_bytes);
  out.Put16(sizeof(TfLiteTensor));
  out.Put16(sizeof(TfLiteEvalTensor));
  out.Put32(StackSize());
  out.Put32(StackHighWater());
  for (const char* text : {kBoardName, kRuntimeName, kRuntimeVersion, kKernelSet, kForgeVersion}) {
    out.PutString(text);
  }
  return Status::kOk;
}

Status AnswerOps(Exchange& exchange) {
  const uint32_t from = exchange.in.Get16();
  if (!exchange.in.Complete()) return Status::kBadRequest;
  ListHead head(exchange.out);
  uint32_t next = from;
  for (; next < static_cast<uint32_t>(kOpCount); ++next) {
    const OpEntry& op = kOps[next];
    // The first is sent in any case, its name cut to what fits: a list that stands still would
    // never end.
    if (next != from && kOpBytes + std::strlen(op.custom_name) > exchange.out.left()) break;
    exchange.out.Put32(static_cast<uint32_t>(op.builtin_code));
    exchange.out.Put32(op.max_version);
    exchange.out.PutString(op.custom_name);
  }
  head.Write(kOpCount, next - from);
  return Status::kOk;
}

void PutOffenders(BodyWriter& out) {
  ListHead head(out);
  uint32_t total = 0;
  uint32_t sent = 0;
  // Before the registration there is no resolver; a model that did not pass its check is not looked
  // at.
  if (g_device.resolver != nullptr) {
    for (Offender offender; NextOffender(g_device.model, *g_device.resolver, &offender); ++total) {
      if (sent != total) continue;
      if (sent != 0 && kOffenderBytes + offender.op.custom_name_length > out.left()) continue;
      out.Put32(static_cast<uint32_t>(offender.op.builtin_code));
      out.Put32(offender.op.version);
      out.Put32(offender.supported_version);
      out.PutString(offender.op.custom_name);
      ++sent;
    }
  }
  head.Write(total, sent);
}

Status AnswerSelfTest(Exchange& exchange) {
  if (!exchange.in.Complete()) return Status::kBadRequest;
  BodyWriter& out = exchange.out;
  out.Put8(kBootSteps);
  for (const Status status : g_device.steps) out.Put16(static_cast<uint16_t>(status));
  out.Put32(g_device.model.op_hash());
  out.Put8(StackCanaryIntact());
  const FaultRecord* fault = g_device.fault;
  out.Put8(fault != nullptr);
  if (fault != nullptr) {
    for (const uint32_t value : {fault->kind, fault->pc, fault->lr, fault->cfsr, fault->hfsr,
                                 fault->bfar, fault->mmfar, fault->sp}) {
      out.Put32(value);
    }
  }
  PutOffenders(out);
  return Status::kOk;
}

// Acts only when the answer is out; see ActOnReset.
Status AnswerReset(Exchange& exchange) {
  const uint8_t mode = exchange.in.Get8();
  return exchange.in.Complete() && mode <= kLeaveEmulator ? Status::kOk : Status::kBadRequest;
}

constexpr Request kRequests[] = {
    {0x01, false, true, AnswerInfo},           {0x02, false, true, AnswerOps},
    {0x03, false, true, AnswerSelfTest},       {0x04, true, false, AnswerTensors},
    {0x10, true, false, AnswerWrite},          {0x11, true, false, AnswerInvoke},
    {0x12, true, false, AnswerRead},           {0x13, true, false, AnswerCrc},
    {0x20, true, false, AnswerSoak},           {0x21, true, false, AnswerProfile},
    {kResetRequest, false, true, AnswerReset},
};

uint32_t FirstFailedStep() {
  uint32_t step = 0;
  while (step < kBootSteps && g_device.steps[step] == Status::kOk) ++step;
  return step;
}

Status Run(Exchange& exchange) {
  for (const Request& request : kRequests) {
    if (request.type != exchange.type) continue;
    if (g_device.fault != nullptr && !request.after_fault) {
      exchange.detail = g_device.fault->pc;
      return static_cast<Status>(g_device.fault->kind);
    }
    if (request.needs_inference && g_device.interpreter == nullptr) {
      exchange.detail = FirstFailedStep();
      return Status::kNotReady;
    }
    return request.handler(exchange);
  }
  return Status::kUnknownRequest;
}

void SendAnswer() { SendFrame(g_last.bytes, g_last.length); }

// Puts the head before the body that the handler wrote, or an error answer in its place.
void FinishAnswer(Status status, const uint8_t* end, uint32_t detail) {
  const uint8_t type = g_last.request[0];
  g_last.bytes[0] = status == Status::kOk ? type | kAnswerBit : kErrorAnswer;
  g_last.bytes[1] = g_last.request[1];
  if (status != Status::kOk) {
    BodyWriter body(g_last.bytes + kHeaderBytes, kLinkMtu);
    body.Put8(type);
    body.Put16(static_cast<uint16_t>(status));
    body.Put32(detail);
    end = body.end();
  }
  g_last.length = static_cast<uint32_t>(end - g_last.bytes);
  g_request_runs = false;
  g_progress.active = false;
  SendAnswer();
}

void HandleFrame() {
  const uint8_t* frame = g_receiver.frame();
  if (g_last.length != 0 && g_last.request_crc == g_receiver.crc() &&
      std::memcmp(g_last.request, frame, kHeaderBytes) == 0) {
    SendAnswer();
    return;
  }
  std::memcpy(g_last.request, frame, kHeaderBytes);
  g_last.request_crc = g_receiver.crc();
  g_request_runs = true;
  const uint8_t* body = frame + kHeaderBytes;
  Exchange exchange = {frame[0], BodyReader(body, g_receiver.length() - kHeaderBytes),
                       BodyWriter(g_last.bytes + kHeaderBytes, kLinkMtu), 0};
  const Status status = Run(exchange);
  FinishAnswer(status, exchange.out.end(), exchange.detail);
  if (exchange.type != kResetRequest || status != Status::kOk) return;
  if (*body == kLeaveEmulator) BoardExit(0);
  BoardReset();
}

}  // namespace

void ServeLink() {
  for (;;) {
    const int byte = UartRead();
    if (byte >= 0 && g_receiver.Feed(static_cast<uint8_t>(byte))) HandleFrame();
  }
}

void AnswerFault(const FaultRecord& fault) {
  if (g_request_runs) FinishAnswer(static_cast<Status>(fault.kind), nullptr, fault.pc);
}

void StartProgress(uint32_t total) {
  g_progress.total = total;
  g_progress.done = 0;
  g_progress.last_ticks = BoardTicks();
  g_progress.active = true;
}

void ReportProgress(uint32_t done) {
  g_progress.done = done;
  KeepAlive();
}

void KeepAlive() {
  const uint32_t ticks_per_second = BoardTicksPerSecond();
  if (!g_progress.active || ticks_per_second == 0) return;
  const uint64_t now = BoardTicks();
  if (now - g_progress.last_ticks < ticks_per_second / 2) return;
  uint8_t frame[kHeaderBytes + kProgressBytes + kCrcBytes] = {kProgress, g_last.request[1]};
  BodyWriter body(frame + kHeaderBytes, kProgressBytes);
  body.Put32(g_progress.done);
  body.Put32(g_progress.total);
  SendFrame(frame, kHeaderBytes + kProgressBytes);
  g_progress.last_ticks = BoardTicks();
  g_progress.reporting_ticks += g_progress.last_ticks - now;
}

uint64_t ReportingTicks() { return g_progress.reporting_ticks; }

}  // namespace forge
