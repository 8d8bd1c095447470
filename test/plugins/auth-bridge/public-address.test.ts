// Which addresses are public, for documents of clients.
import { expect } from 'chai'
import { isPublic } from '../../../plugins/auth-bridge/clients/public-address.ts'

describe('auth-bridge, of the address of a document', () => {
  for (const host of [
    '93.184.215.14',
    '8.8.8.8',
    '1.1.1.1',
    '172.15.255.255',
    '172.32.0.1',
    '100.63.255.255',
    '223.255.255.255',
  ])
    it(`takes ${host} for public`, async () => expect(await isPublic(`https://${host}/x`)).to.equal(true))
  for (const host of ['[2606:4700:4700::1111]', '[2001:4860:4860::8888]', '[2a00:1450::1]', '[3ffe::1]'])
    it(`takes ${host} for public`, async () => expect(await isPublic(`https://${host}/x`)).to.equal(true))
  for (const host of [
    '127.0.0.1',
    '10.0.0.1',
    '224.0.0.1',
    '[::ffff:8.8.8.8]',
    '[::1]',
    '[fec0::1]',
    '[2001:db8::1]',
    'localhost',
    'x.localhost.',
  ])
    it(`does not take ${host} for public`, async () => expect(await isPublic(`https://${host}/x`)).to.equal(false))
  it('takes no name that is not found, and no URL that is none', async () => {
    expect([await isPublic('https://nobody.invalid/x'), await isPublic('x')]).to.deep.equal([false, false])
  })
})
