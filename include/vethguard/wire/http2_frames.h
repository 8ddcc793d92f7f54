/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_frames: decisions about frames to HTTP/2 clients (RFC 9113) that the proxy and the gateway share. Pure: this
 * module depends on no HTTP/2 library.
 */
#ifndef VETHGUARD_WIRE_HTTP2_FRAMES_H
#define VETHGUARD_WIRE_HTTP2_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Error codes of section 7 that do not blame the client. */
enum { HTTP2_CODE_NO_ERROR = 0, HTTP2_CODE_INTERNAL_ERROR = 2, HTTP2_CODE_CANCEL = 8, HTTP2_CODE_CONNECT_ERROR = 10 };

/* True if it is the client's fault that the HTTP/2 library resets a stream with this code. */
static inline bool http2_is_clients_fault(uint32_t code)
{
	return code != HTTP2_CODE_NO_ERROR && code != HTTP2_CODE_INTERNAL_ERROR && code != HTTP2_CODE_CANCEL &&
	       code != HTTP2_CODE_CONNECT_ERROR;
}

/* Returns how many bytes of content the next DATA frame may have: at most `most`, the windows of connection and
 * stream, and the largest frame that the client takes. */
static inline ptrdiff_t http2_data_size(uint32_t most, int32_t connection, int32_t stream, uint32_t frame)
{
	int64_t n = most;

	n = n < connection ? n : connection;
	n = n < stream ? n : stream;
	return (ptrdiff_t)(n < frame ? n : frame);
}

#endif
