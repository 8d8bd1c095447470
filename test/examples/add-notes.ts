// Adds notes to the file it is given until it is killed; prints each id once the note is kept. note-store.test.ts kills it.
import { createNoteStore } from '../../examples/notes/note-store.ts'

const [file = ''] = process.argv.slice(2)
const store = createNoteStore(() => file)
const text = 'x'.repeat(100_000)
for (;;) process.stdout.write(`${(await store.add({ title: 'kept', text, tags: [] })).id}\n`)
