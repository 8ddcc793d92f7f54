/* SPDX-License-Identifier: Apache-2.0 */
/* Data is skipped in one step; lines are read byte by byte. */
#include "vethguard/wire/body_meter.h"

#define SIZE_DIGITS_MAX 15 /* hexadecimal; no sum of sizes is kept */

static void enter(struct body_meter *m, enum body_meter_state state)
{
	m->state = state;
	m->digits = 0;
	m->cr = false;
	m->line = 0;
	m->line_empty = true;
}

void body_meter_begin(struct body_meter *m, const struct proxy_head *head)
{
	*m = (struct body_meter){.left = head->length};
	if (head->body == PROXY_BODY_LENGTH && head->length)
		enter(m, BODY_METER_DATA);
	else if (head->body == PROXY_BODY_CHUNKED)
		enter(m, BODY_METER_SIZE);
	else
		enter(m, BODY_METER_DONE);
}

static size_t skip(struct body_meter *m, size_t n)
{
	const size_t take = m->left < n ? (size_t)m->left : n;

	m->left -= take;
	if (m->left)
		return take;
	enter(m, m->state == BODY_METER_DATA ? BODY_METER_DONE : BODY_METER_CHUNK_END);
	return take;
}

static void read_size(struct body_meter *m, char c)
{
	const int digit = slice_hex_digit(c);

	if (m->cr && c == '\n' && m->digits)
		enter(m, m->left ? BODY_METER_CHUNK : BODY_METER_TRAILERS);
	else if (!m->cr && c == '\r' && m->digits)
		m->cr = true;
	else if (!m->cr && digit >= 0 && m->digits++ < SIZE_DIGITS_MAX)
		m->left = m->left << 4 | (uint64_t)digit;
	else
		enter(m, BODY_METER_BAD);
}

static void read_chunk_end(struct body_meter *m, char c)
{
	if (!m->cr && c == '\r')
		m->cr = true;
	else if (m->cr && c == '\n')
		enter(m, BODY_METER_SIZE);
	else
		enter(m, BODY_METER_BAD);
}

static void read_trailers(struct body_meter *m, char c)
{
	if (++m->line > BODY_METER_TRAILERS_MAX || (c == '\n') != m->cr) {
		enter(m, BODY_METER_BAD);
	} else if (c == '\n' && m->line_empty) {
		enter(m, BODY_METER_DONE);
	} else {
		m->cr = c == '\r';
		m->line_empty = c == '\n' || (m->cr && m->line_empty);
	}
}

size_t body_meter_take(struct body_meter *m, const uint8_t *p, size_t n)
{
	size_t used = 0;

	while (used < n) {
		switch (m->state) {
		case BODY_METER_DATA:
		case BODY_METER_CHUNK:
			used += skip(m, n - used);
			break;
		case BODY_METER_SIZE:
			read_size(m, (char)p[used++]);
			break;
		case BODY_METER_CHUNK_END:
			read_chunk_end(m, (char)p[used++]);
			break;
		case BODY_METER_TRAILERS:
			read_trailers(m, (char)p[used++]);
			break;
		default:
			return used;
		}
	}
	return used;
}
