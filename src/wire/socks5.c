/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each message is read as far as it has come. What can be refused by its first bytes is refused at
 * once, before the rest has come: a client that means another protocol sends no more of this one.
 */
#include "vethguard/wire/socks5.h"

#define HEAD_BYTES 4

enum { COMMAND_CONNECT = 1, COMMAND_UDP_ASSOCIATE = 3 };
enum { ADDRESS_IPV4 = 1, ADDRESS_NAME = 3, ADDRESS_IPV6 = 4 };

static enum socks5_status bad_greeting(struct socks5_greeting *out, const char *why)
{
	*out = (struct socks5_greeting){.why = why};
	return SOCKS5_BAD;
}

enum socks5_status socks5_greeting_parse(const uint8_t *p, size_t n, struct socks5_greeting *out)
{
	struct reader r = reader_over(p, n);
	uint8_t version = reader_u8(&r);
	struct slice methods;

	*out = (struct socks5_greeting){.why = ""};
	if (r.failed)
		return SOCKS5_MORE;
	if (version != SOCKS5_VERSION)
		return bad_greeting(out, "a greeting of another version than SOCKS5");
	methods = reader_vector(&r, 1, UINT8_MAX);
	if (r.failed)
		return SOCKS5_MORE;
	out->no_authentication =
	        methods.n && memchr(methods.p, SOCKS5_NO_AUTHENTICATION, methods.n);
	out->password = methods.n && memchr(methods.p, SOCKS5_PASSWORD, methods.n);
	out->used = n - r.left;
	return SOCKS5_DONE;
}

enum socks5_status socks5_login_parse(const uint8_t *p, size_t n, struct socks5_login *out)
{
	struct reader r = reader_over(p, n);
	uint8_t version = reader_u8(&r);
	struct slice user, password;

	*out = (struct socks5_login){.user = SLICE(""), .password = SLICE(""), .why = ""};
	if (!r.failed && version != SOCKS5_LOGIN_VERSION) {
		out->why = "a SOCKS login of another version";
		return SOCKS5_BAD;
	}
	user = reader_vector(&r, 1, UINT8_MAX);
	password = reader_vector(&r, 1, UINT8_MAX);
	if (r.failed)
		return SOCKS5_MORE;
	out->user = user;
	out->password = password;
	out->used = n - r.left;
	return SOCKS5_DONE;
}

static enum socks5_status bad_request(
        struct socks5_request *out, enum socks5_reply reply, const char *why)
{
	*out = (struct socks5_request){.name = SLICE(""), .reply = reply, .why = why};
	return SOCKS5_BAD;
}

/* Looks at the bytes of the head that have come. */
static enum socks5_status check_head(const uint8_t *p, size_t n, struct socks5_request *out)
{
	if (n > 0 && p[0] != SOCKS5_VERSION)
		return bad_request(out, SOCKS5_FAILURE, "a SOCKS request of another version");
	if (n > 1 && (p[1] == 0 || p[1] > COMMAND_UDP_ASSOCIATE))
		return bad_request(out, SOCKS5_NO_COMMAND, "an unknown command of SOCKS");
	if (n > 1 && p[1] != COMMAND_CONNECT)
		return bad_request(out, SOCKS5_NO_COMMAND,
		        "a SOCKS command other than CONNECT: BIND and UDP ASSOCIATE are not "
		        "served");
	if (n > 2 && p[2] != 0)
		return bad_request(
		        out, SOCKS5_FAILURE, "a SOCKS request whose reserved byte is not 0");
	if (n > 3 && p[3] != ADDRESS_IPV4 && p[3] != ADDRESS_NAME && p[3] != ADDRESS_IPV6)
		return bad_request(out, SOCKS5_NO_ADDRESS_TYPE, "an unknown address type of SOCKS");
	return n < HEAD_BYTES ? SOCKS5_MORE : SOCKS5_DONE;
}

static void read_address(struct reader *r, uint8_t type, struct socks5_request *out)
{
	if (type == ADDRESS_NAME) {
		out->name = reader_vector(r, 1, SOCKS5_NAME_MAX);
		return;
	}
	out->address.family = type == ADDRESS_IPV4 ? 4 : 6;
	reader_copy(r, out->address.bytes, type == ADDRESS_IPV4 ? 4 : 16);
}

enum socks5_status socks5_request_parse(const uint8_t *p, size_t n, struct socks5_request *out)
{
	struct reader r = reader_over(p, n);
	enum socks5_status head;

	*out = (struct socks5_request){.name = SLICE(""), .why = ""};
	head = check_head(p, n, out);
	if (head != SOCKS5_DONE)
		return head;
	reader_bytes(&r, HEAD_BYTES);
	if (p[3] == ADDRESS_NAME && n > HEAD_BYTES && p[HEAD_BYTES] == 0)
		return bad_request(out, SOCKS5_FAILURE, "a SOCKS request for an empty name");
	read_address(&r, p[3], out);
	out->port = reader_u16(&r);
	if (r.failed) {
		*out = (struct socks5_request){.name = SLICE(""), .why = ""};
		return SOCKS5_MORE;
	}
	if (out->port == 0)
		return bad_request(out, SOCKS5_FAILURE, "a SOCKS request for port 0");
	out->used = n - r.left;
	return SOCKS5_DONE;
}

void socks5_answer(enum socks5_reply reply, uint8_t out[SOCKS5_ANSWER_BYTES])
{
	memset(out, 0, SOCKS5_ANSWER_BYTES);
	out[0] = SOCKS5_VERSION;
	out[1] = (uint8_t)reply;
	out[3] = ADDRESS_IPV4;
}
