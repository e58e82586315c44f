/** Valid commands: each builder fills what a test does not care about. */
import type {
  AuthenticateCommand,
  ChangeCommand,
  CreateCommand,
  FinalOutcomeDetails,
  OpenCommand,
  RecordCommand,
} from '../../shared/payment/commands.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { created, operationId } from './payment-events.ts';
import type { Plain } from './plain.ts';

/** The operation that a command asks for, when the payment's own are 0, 1 and 2. */
export const NEW_OPERATION = operationId(9);
export const identity = { fingerprint: 'f'.repeat(64) };

const first = created();
if (first.type !== 'PaymentCreated') throw new Error('created() makes a PaymentCreated');
const { card, details, personal } = first.data;

export const create = (fields: Partial<Plain<CreateCommand>> = {}): CreateCommand => ({
  kind: 'create',
  operationId: NEW_OPERATION,
  paymentId: 'pay_1',
  merchantId: 'm_1',
  amount: minor(2500),
  currency: 'USD',
  captureNow: false,
  card,
  numberBrand: 'VISA',
  details,
  personal,
  identity,
  rules: { maxAmount: 99_999_999 },
  providers: [],
  ...(fields as Partial<CreateCommand>),
});

const change =
  (kind: ChangeCommand['kind']) =>
  (fields: Partial<Plain<Omit<ChangeCommand, 'kind'>>> = {}): ChangeCommand => ({
    operationId: NEW_OPERATION,
    identity,
    operationsMax: 1000,
    providers: [],
    ...(fields as Partial<ChangeCommand>),
    kind,
  });
export const capture = change('capture');
export const voidIt = change('void');
export const refund = change('refund');

export const APPROVED: FinalOutcomeDetails = { outcome: 'APPROVED' };
/** The provider has opened something for the operation. */
export const open = (operationId: string, reference = 'prov_1'): OpenCommand => ({
  kind: 'open',
  operationId,
  reference,
});
/** The provider waits for the shopper of the operation. */
export const authenticate = (operationId: string): AuthenticateCommand => ({
  kind: 'authenticate',
  operationId,
  expiresAt: '2026-01-15T10:15:00.000Z',
});
export const record = (
  operation: string,
  outcome: FinalOutcomeDetails = APPROVED,
): RecordCommand => ({
  kind: 'record',
  operationId: operation,
  ...outcome,
});
