// The entry limit of LRU caches that each host creates.

/** Options of an `LRUCache` with at most `max` entries. Its option `max` allocates the entries in advance: 1 to 2 ms for 10,000. */
export const lruLimit = (max: number) => ({ maxSize: max, sizeCalculation: () => 1 })
