// The requests that need a model that is ready to run. Called by the link only when it is.
#pragma once

#include "forge_status.h"
#include "message.h"

namespace forge {

Status AnswerTensors(Request& request);
Status AnswerWrite(Request& request);
Status AnswerRead(Request& request);
Status AnswerCrc(Request& request);
Status AnswerFill(Request& request);
Status AnswerForget(Request& request);
Status AnswerInvoke(Request& request);
Status AnswerSoak(Request& request);
Status AnswerProfile(Request& request);
Status AnswerLayer(Request& request);  // only when kKeepTensors

}  // namespace forge
