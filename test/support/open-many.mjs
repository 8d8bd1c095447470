// Opens many connections at once, optionally sends a request on each, and prints how many were accepted, answered with 200 and
// failed. It ends when all are finished, or after a time without events.
import { connect } from 'node:net'

/** Milliseconds without events before the rest counts as lost. Lost SYNs are not reported, and the system retries after 1 s. */
const PATIENCE = 400

const [url = '', count = '', request = ''] = process.argv.slice(2)
const { hostname: host, port } = new URL(url)
const told = { connected: 0, answered: 0, failed: 0 }
let open = Number(count)

const end = () => {
  process.stdout.write(`${JSON.stringify(told)}\n`, () => process.exit())
}
const settle = () => {
  if (--open === 0) end()
}

/** Checks after a turn of the event loop, so that a stalled process first handles pending events. */
function endIfQuiet(before) {
  const { connected } = told
  if (connected === before) end()
  else setTimeout(() => setImmediate(endIfQuiet, connected), PATIENCE)
}
// With a request, waits for all responses.
if (request === '') endIfQuiet(-1)

for (let index = 0; index < Number(count); index++) {
  let text = ''
  const socket = connect({ host, port: Number(port) })
  socket.once('connect', () => {
    told.connected++
    if (request === '') settle()
    else socket.write(request, 'latin1')
  })
  socket.on('data', chunk => {
    text += chunk
  })
  socket.once('error', () => told.failed++)
  socket.once('close', () => {
    if (text.startsWith('HTTP/1.1 200')) told.answered++
    settle()
  })
}
