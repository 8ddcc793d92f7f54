/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a byte shuffle is sixteen table lookups in one instruction. Two of them, by
 * the low and the high half of each byte, tell which groups may have the byte. A place counts if
 * its three bytes have a group in common. A group has few byte strings, so nearly all places drop
 * out. The method is Geoffrey Langdale's Teddy (Hyperscan).
 */
#include "vethguard/base/vector.h"

void vector_add(struct vector_groups *v, unsigned group, unsigned depth, uint8_t byte)
{
	v->low[depth][byte & 15] |= (uint8_t)(1u << group);
	v->high[depth][byte >> 4] |= (uint8_t)(1u << group);
}

void vector_add_any(struct vector_groups *v, unsigned group, unsigned depth)
{
	for (unsigned i = 0; i < 16; i++) {
		v->low[depth][i] |= (uint8_t)(1u << group);
		v->high[depth][i] |= (uint8_t)(1u << group);
	}
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define STEP 32

static AVX2 __m256i table(const uint8_t *p)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

static inline AVX2 __m256i groups(__m256i low, __m256i high, const uint8_t *text)
{
	const __m256i half = _mm256_set1_epi8(15);
	__m256i bytes = _mm256_loadu_si256((const __m256i *)text);
	__m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half);

	return _mm256_and_si256(_mm256_shuffle_epi8(low, _mm256_and_si256(bytes, half)),
	        _mm256_shuffle_epi8(high, upper));
}

AVX2 bool vector_find(const struct vector_groups *v, const uint8_t *text, size_t n, size_t *at)
{
	const __m256i low0 = table(v->low[0]), low1 = table(v->low[1]), low2 = table(v->low[2]);
	const __m256i high0 = table(v->high[0]), high1 = table(v->high[1]),
	              high2 = table(v->high[2]);
	size_t i = *at;

	for (; n >= STEP + 2 && i <= n - STEP - 2; i += STEP) {
		__m256i both = _mm256_and_si256(
		        groups(low0, high0, text + i), groups(low1, high1, text + i + 1));
		__m256i all = _mm256_and_si256(both, groups(low2, high2, text + i + 2));
		unsigned none = (unsigned)_mm256_movemask_epi8(
		        _mm256_cmpeq_epi8(all, _mm256_setzero_si256()));

		if (none != UINT32_MAX) {
			*at = i + (unsigned)__builtin_ctz(~none);
			return true;
		}
	}
	*at = i;
	return false;
}

/* One bit for each of 32 bytes: it belongs to some group at depth 0. */
static inline AVX2 uint32_t members(__m256i low, __m256i high, const uint8_t *text)
{
	return ~(uint32_t)_mm256_movemask_epi8(
	        _mm256_cmpeq_epi8(groups(low, high, text), _mm256_setzero_si256()));
}

AVX2 bool vector_find_run(const struct vector_groups *v, const uint8_t *text, size_t n, size_t *at)
{
	const __m256i low = table(v->low[0]), high = table(v->high[0]);
	size_t i = *at;

	for (; n >= 2 * STEP && i <= n - 2 * STEP; i += 2 * STEP) {
		uint64_t run = members(low, high, text + i) |
		               (uint64_t)members(low, high, text + i + STEP) << STEP;

		run &= run >> 1; /* bit k: bytes k and k + 1 */
		run &= run >> 2; /* ... to k + 3 */
		run &= run >> 4; /* ... to k + 7 */
		run &= run >> 4; /* ... to k + 11 */
		if (run) {
			*at = i + (unsigned)__builtin_ctzll(run);
			return true;
		}
	}
	*at = i;
	return false;
}

bool vector_works(void)
{
	return __builtin_cpu_supports("avx2");
}

bool vector_finds_runs(void)
{
	return vector_works();
}

#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>

#define STEP 16

static inline uint8x16_t groups(uint8x16_t low, uint8x16_t high, const uint8_t *text)
{
	uint8x16_t bytes = vld1q_u8(text);

	return vandq_u8(vqtbl1q_u8(low, vandq_u8(bytes, vdupq_n_u8(15))),
	        vqtbl1q_u8(high, vshrq_n_u8(bytes, 4)));
}

bool vector_find(const struct vector_groups *v, const uint8_t *text, size_t n, size_t *at)
{
	const uint8x16_t low0 = vld1q_u8(v->low[0]), high0 = vld1q_u8(v->high[0]);
	const uint8x16_t low1 = vld1q_u8(v->low[1]), high1 = vld1q_u8(v->high[1]);
	const uint8x16_t low2 = vld1q_u8(v->low[2]), high2 = vld1q_u8(v->high[2]);
	size_t i = *at;

	for (; n >= STEP + 2 && i <= n - STEP - 2; i += STEP) {
		uint8x16_t both =
		        vandq_u8(groups(low0, high0, text + i), groups(low1, high1, text + i + 1));
		uint8x16_t all = vandq_u8(both, groups(low2, high2, text + i + 2));
		/* Four bits for each byte that has a group. */
		uint64_t some = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(
		                                      vreinterpretq_u16_u8(vtstq_u8(all, all)), 4)),
		        0);

		if (some) {
			*at = i + (unsigned)__builtin_ctzll(some) / 4;
			return true;
		}
	}
	*at = i;
	return false;
}

bool vector_works(void)
{
	return true;
}

bool vector_find_run(const struct vector_groups *v, const uint8_t *text, size_t n, size_t *at)
{
	(void)v, (void)text, (void)n, (void)at;
	return false;
}

bool vector_finds_runs(void)
{
	return false;
}

#else
bool vector_find(const struct vector_groups *v, const uint8_t *text, size_t n, size_t *at)
{
	(void)v, (void)text, (void)n, (void)at;
	return false;
}

bool vector_works(void)
{
	return false;
}

bool vector_find_run(const struct vector_groups *v, const uint8_t *text, size_t n, size_t *at)
{
	(void)v, (void)text, (void)n, (void)at;
	return false;
}

bool vector_finds_runs(void)
{
	return false;
}
#endif
