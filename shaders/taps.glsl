// Statements written out for the taps of a filter, since arrays that live in registers are indexed by constants alone.
//
// FOR_TAP_ROWS(M, r)  M(r, 0) ... M(r, FILTER_H - 1)
// FOR_TAPS(M, h)      M(h, 0) ... M(h, FILTER_W - 1)

#define TAP_ROWS_1(M, r) M(r, 0)
#define TAP_ROWS_2(M, r) TAP_ROWS_1(M, r) M(r, 1)
#define TAP_ROWS_3(M, r) TAP_ROWS_2(M, r) M(r, 2)
#define TAP_ROWS_4(M, r) TAP_ROWS_3(M, r) M(r, 3)
#define TAP_ROWS_5(M, r) TAP_ROWS_4(M, r) M(r, 4)
#define TAP_ROWS_6(M, r) TAP_ROWS_5(M, r) M(r, 5)
#define TAP_ROWS_7(M, r) TAP_ROWS_6(M, r) M(r, 6)
#if FILTER_H == 1
#define FOR_TAP_ROWS(M, r) TAP_ROWS_1(M, r)
#elif FILTER_H == 2
#define FOR_TAP_ROWS(M, r) TAP_ROWS_2(M, r)
#elif FILTER_H == 3
#define FOR_TAP_ROWS(M, r) TAP_ROWS_3(M, r)
#elif FILTER_H == 4
#define FOR_TAP_ROWS(M, r) TAP_ROWS_4(M, r)
#elif FILTER_H == 5
#define FOR_TAP_ROWS(M, r) TAP_ROWS_5(M, r)
#elif FILTER_H == 6
#define FOR_TAP_ROWS(M, r) TAP_ROWS_6(M, r)
#else
#define FOR_TAP_ROWS(M, r) TAP_ROWS_7(M, r)
#endif

#define TAPS_1(M, h) M(h, 0)
#define TAPS_2(M, h) TAPS_1(M, h) M(h, 1)
#define TAPS_3(M, h) TAPS_2(M, h) M(h, 2)
#define TAPS_4(M, h) TAPS_3(M, h) M(h, 3)
#define TAPS_5(M, h) TAPS_4(M, h) M(h, 4)
#define TAPS_6(M, h) TAPS_5(M, h) M(h, 5)
#define TAPS_7(M, h) TAPS_6(M, h) M(h, 6)
#if FILTER_W == 1
#define FOR_TAPS(M, h) TAPS_1(M, h)
#elif FILTER_W == 2
#define FOR_TAPS(M, h) TAPS_2(M, h)
#elif FILTER_W == 3
#define FOR_TAPS(M, h) TAPS_3(M, h)
#elif FILTER_W == 4
#define FOR_TAPS(M, h) TAPS_4(M, h)
#elif FILTER_W == 5
#define FOR_TAPS(M, h) TAPS_5(M, h)
#elif FILTER_W == 6
#define FOR_TAPS(M, h) TAPS_6(M, h)
#else
#define FOR_TAPS(M, h) TAPS_7(M, h)
#endif
