/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket_fill: puts a credential's value in place of its placeholder in the sandbox's text
 * messages (inject: placeholder, in: websocket). A text message is held until it is whole, and goes
 * upstream as one frame with a new mask. Other frames pass as they are.
 */
#ifndef VETHGUARD_SRC_PROXY_WEBSOCKET_WEBSOCKET_FILL_H
#define VETHGUARD_SRC_PROXY_WEBSOCKET_WEBSOCKET_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;
struct proxy;
struct websocket_fill;

/* True for an exchange in whose messages placeholders are replaced. */
bool websocket_fill_is_wanted(const struct exchange *ex);
/* Returns NULL if there is no memory. */
struct websocket_fill *websocket_fill_new(struct proxy *proxy);
void websocket_fill_free(struct websocket_fill *f);
/* True if the frame whose head or content has just come belongs to a message that is held. */
bool websocket_fill_takes(const struct exchange *ex);
/* Takes content of such a frame, which is UTF-8 so far; n is 0 if the frame has none. Sends the
 * message once it is whole. Returns 0; -EACCES: the message has something that it must not have;
 * or another -errno: websocket_fill_fault(). */
int websocket_fill_take(struct exchange *ex, const uint8_t *p, size_t n);
/* What the relay ends with after that error: the close code, and one sentence. */
uint16_t websocket_fill_fault(int rc, const char **detail);

#endif
