// Large texts for the benchmark: records as JSON, as tools return them. Their quotes must be escaped on the way.

/** The text of so many megabytes of records. */
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
