from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0003_refunds"),
    ]

    operations = [
        migrations.CreateModel(
            name="Exchange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scope", models.CharField(max_length=255)),
                ("thread_id", models.CharField(max_length=255)),
                ("run_id", models.CharField(max_length=255)),
                ("messages", models.JSONField(default=list)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scope", "thread_id", "run_id"), name="agents_exchange_run"
                    )
                ],
            },
        ),
    ]
