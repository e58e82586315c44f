// NestJS CQRS on Fastify, over an event log and read models in SQLite. The compiler writes the injected
// classes next to the constructors, so they are imported as values.
import 'reflect-metadata';
import { DatabaseSync } from 'node:sqlite';
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  Module,
  Param,
  Post,
  Req,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CommandBus, CommandHandler, CqrsModule, EventBus, EventsHandler } from '@nestjs/cqrs';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { approved, merchantOf, newPayment, type Payment, PaymentRequest } from './contract.ts';

const db = new DatabaseSync(`${process.env.DATA_DIR}/payments.sqlite`);
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
db.exec(`CREATE TABLE IF NOT EXISTS events (position INTEGER PRIMARY KEY, stream TEXT NOT NULL,
  revision INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL, UNIQUE (stream, revision))`);
db.exec('CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, data TEXT NOT NULL)');
const insert = db.prepare('INSERT INTO events (stream, revision, type, data) VALUES (?, ?, ?, ?)');
const replace = db.prepare('INSERT OR REPLACE INTO payments VALUES (?, ?)');
const select = db.prepare('SELECT data FROM payments WHERE id = ?');

class PaymentCreated {
  constructor(readonly payment: Payment) {}
}
class PaymentSucceeded {
  constructor(readonly payment: Payment) {}
}
class CreatePayment {
  constructor(readonly payment: Payment) {}
}

@CommandHandler(CreatePayment)
class CreatePaymentHandler {
  constructor(private readonly events: EventBus) {}
  private append(revision: number, event: PaymentCreated | PaymentSucceeded) {
    const data = JSON.stringify(event.payment);
    insert.run(event.payment.paymentId, revision, event.constructor.name, data);
    this.events.publish(event);
  }
  async execute({ payment }: CreatePayment) {
    this.append(0, new PaymentCreated(payment));
    const done = await approved(payment);
    this.append(1, new PaymentSucceeded(done));
    return done;
  }
}

@EventsHandler(PaymentCreated, PaymentSucceeded)
class PaymentProjection {
  handle({ payment }: PaymentCreated | PaymentSucceeded) {
    replace.run(payment.paymentId, JSON.stringify(payment));
  }
}

class TokenCheck implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest();
    request.merchantId = await merchantOf(request.headers.authorization);
    return request.merchantId !== undefined;
  }
}

type WithMerchant = { merchantId: string };

@Controller('api/v1/payments')
@UseGuards(TokenCheck)
class PaymentsController {
  constructor(private readonly commands: CommandBus) {}
  @Post()
  create(@Req() { merchantId }: WithMerchant, @Body() body: unknown) {
    const { data, error } = PaymentRequest.safeParse(body);
    if (error) throw new HttpException(error.issues, 400);
    return this.commands.execute(new CreatePayment(newPayment(merchantId, data)));
  }
  @Get(':id')
  get(@Req() { merchantId }: WithMerchant, @Param('id') id: string) {
    const payment = JSON.parse(String(select.get(id)?.data ?? 'null'));
    if (payment?.merchantId !== merchantId) throw new HttpException('PAYMENT_NOT_FOUND', 404);
    return payment;
  }
}

@Module({
  imports: [CqrsModule],
  controllers: [PaymentsController],
  providers: [CreatePaymentHandler, PaymentProjection],
})
class AppModule {}

const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: ['error'] });
app.getHttpAdapter().get('/health/ready', (_request, reply) => reply.send({ ok: true }));
await app.listen(Number(process.env.PORT), '127.0.0.1');
