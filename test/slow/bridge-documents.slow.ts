// Tests auth-bridge with client metadata documents. The bridge fetches documents only from public IP addresses, so
// bridge-documents/ runs in its own network namespace.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { APPLICATIONS } from '../plugins/auth-bridge/real-clients.ts'
import { makeCertificate } from '../plugins/dev-auth-server/certificate.ts'
import { needsProgram } from '../support/needs-program.ts'
import { ADDRESS } from './bridge-documents/address.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const INSIDE = 'test/slow/bridge-documents/inside.ts'
const NETWORK = `ip link set lo up && ip addr add ${ADDRESS}/32 dev lo && exec "$@"`

const IN_NETWORK = ['--user', '--map-root-user', '--net']
const mayMakeNetworks = () => spawnSync('unshare', [...IN_NETWORK, 'true']).status === 0

describe('auth-bridge: client metadata documents', () => {
  after(removeFolders)

  it('tests in bridge-documents/ pass in a network with a public address', async function () {
    needsProgram(this, 'unshare', 'apt-get install util-linux, where users may make networks', mayMakeNetworks)
    needsProgram(this, 'ip', 'apt-get install iproute2')
    needsProgram(this, 'openssl', 'apt-get install openssl')
    const folder = await makeFolder({})
    const { file } = makeCertificate(folder, `IP:${ADDRESS},IP:127.0.0.1`)
    const mocha = [process.execPath, 'node_modules/mocha/bin/mocha.js', '--no-parallel', '--spec', INSIDE]
    const child = spawn('unshare', [...IN_NETWORK, 'sh', '-c', NETWORK, 'sh', ...mocha], {
      cwd: ROOT,
      env: { ...process.env, NODE_EXTRA_CA_CERTS: file, DOCUMENTS_FOLDER: folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (output += text))
    const [code] = await once(child, 'close')
    const [, passing = '0'] = /(\d+) passing/.exec(output) ?? []
    expect(code, output).to.equal(0)
    expect(Number(passing)).to.equal(APPLICATIONS.length * 3 + 1)
  })
})
