/* SPDX-License-Identifier: Apache-2.0 */
/* state_value: reads values that a state file has as text. All return false if the text is not such
 * a value. */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_STATE_VALUE_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_STATE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vethguard/base/ip.h"

/* Reads n bytes from 2 * n hex digits, in lower case as state_pack.c writes them. */
bool state_hex_of(const char *text, uint8_t *out, size_t n);
bool state_u64_of(const char *text, uint64_t *out);
/* An empty text stands for no address. */
bool state_ip_of(const char *text, uint8_t family, struct ip *out);
bool state_prefix_of(const char *text, uint8_t family, struct ip_prefix *out);
/* Copies the text. size: bytes of out, with the NUL. */
bool state_text_of(const char *text, char *out, size_t size);

#endif
