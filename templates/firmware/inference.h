// The requests that need a model that is ready to run. Called by the link only when it is.
#pragma once

#include "forge_status.h"
#include "message.h"

namespace forge {

Status AnswerTensors(Exchange& exchange);
Status AnswerWrite(Exchange& exchange);
Status AnswerRead(Exchange& exchange);
Status AnswerCrc(Exchange& exchange);
Status AnswerInvoke(Exchange& exchange);
Status AnswerSoak(Exchange& exchange);
Status AnswerProfile(Exchange& exchange);

}  // namespace forge
