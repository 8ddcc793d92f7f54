/* SPDX-License-Identifier: Apache-2.0 */
#include "vethguard/wire/balancer_header.h"

#define COMMAND_AT 12 /* behind the signature */
#define FAMILY_AT 13
#define LENGTH_AT 14
#define COMMAND_LOCAL 0x20 /* with the version in the upper half */
#define COMMAND_PROXY 0x21
#define TCP4 0x11
#define TCP6 0x21
#define TCP4_BYTES 12 /* two addresses and two ports */
#define TCP6_BYTES 36

static const uint8_t signature[COMMAND_AT] = {
        '\r', '\n', '\r', '\n', 0, '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static uint16_t number(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void read4(const uint8_t *p, struct balancer_header *out)
{
	out->source.family = 4;
	memcpy(out->source.bytes, p, 4);
	out->source_port = number(p + 8);
}

static void read6(const uint8_t *p, struct balancer_header *out)
{
	const bool is4 = memcmp(p, mapped, sizeof(mapped)) == 0;

	out->source.family = is4 ? 4 : 6;
	memcpy(out->source.bytes, is4 ? p + sizeof(mapped) : p, is4 ? 4 : 16);
	out->source_port = number(p + 32);
}

/* Reads the client's address and port. length: bytes of the addresses and of the TLVs after them.
 * Returns false if p does not hold the address of a TCP client. */
static bool read_addresses(
        uint8_t family, const uint8_t *p, size_t length, struct balancer_header *out)
{
	enum ip_class class;

	if (family == TCP4 && length >= TCP4_BYTES)
		read4(p, out);
	else if (family == TCP6 && length >= TCP6_BYTES)
		read6(p, out);
	else
		return false;
	class = ip_classify(&out->source);
	return class != IP_UNSPECIFIED && class != IP_MULTICAST && class != IP_BROADCAST;
}

enum balancer_header_status balancer_header_parse(
        const uint8_t *p, size_t n, struct balancer_header *out)
{
	const size_t begin = n < COMMAND_AT ? n : COMMAND_AT;
	size_t length;

	*out = (struct balancer_header){.local = false};
	if (n && memcmp(p, signature, begin) != 0)
		return BALANCER_HEADER_BAD;
	if (n > COMMAND_AT && p[COMMAND_AT] != COMMAND_LOCAL && p[COMMAND_AT] != COMMAND_PROXY)
		return BALANCER_HEADER_BAD;
	if (n < BALANCER_HEADER_FIXED)
		return BALANCER_HEADER_MORE;
	length = number(p + LENGTH_AT);
	if (length > BALANCER_HEADER_MAX - BALANCER_HEADER_FIXED)
		return BALANCER_HEADER_BAD;
	if (n < BALANCER_HEADER_FIXED + length)
		return BALANCER_HEADER_MORE;
	out->local = p[COMMAND_AT] == COMMAND_LOCAL;
	out->used = BALANCER_HEADER_FIXED + length;
	if (out->local || read_addresses(p[FAMILY_AT], p + BALANCER_HEADER_FIXED, length, out))
		return BALANCER_HEADER_DONE;
	*out = (struct balancer_header){.local = false};
	return BALANCER_HEADER_BAD;
}
