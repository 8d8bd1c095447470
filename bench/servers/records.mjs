// Creates large texts: JSON records, whose quotes must be escaped in a tool result.

/** Returns a JSON text of this size. */
export function makeRecords(megabytes) {
  const records = []
  for (let size = 0; size < megabytes * 1e6; ) {
    const record = JSON.stringify({
      id: records.length,
      name: 'a record of the benchmark',
      tags: ['one', 'two'],
      price: 9.95,
    })
    records.push(record)
    size += record.length + 1
  }
  return `[${records.join(',')}]`
}
