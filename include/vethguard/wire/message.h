/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message: the messages that the programs send each other over SOCK_SEQPACKET pairs, and their encoding. There is a
 * header for each pair of programs; message_type.h has the numbers, and what all messages have in common.
 */
#ifndef VETHGUARD_WIRE_MESSAGE_H
#define VETHGUARD_WIRE_MESSAGE_H

#include "vethguard/wire/message_credential.h"
#include "vethguard/wire/message_fetch.h"
#include "vethguard/wire/message_gateway.h"
#include "vethguard/wire/message_keeper.h"
#include "vethguard/wire/message_quota.h"
#include "vethguard/wire/message_recorder.h"
#include "vethguard/wire/message_rules.h"
#include "vethguard/wire/message_run.h"
#include "vethguard/wire/message_token.h"
#include "vethguard/wire/message_type.h"
#include "vethguard/wire/message_upgrade.h"
#include "vethguard/wire/message_worker.h"

#endif
