// The size limit of LRU caches that are created with each host.

/** Options of an `LRUCache` with at most `max` entries. Its option `max` allocates all entries in advance: 10,000 take 1 to 2 ms. */
export const lruLimit = (max: number) => ({ maxSize: max, sizeCalculation: () => 1 })
